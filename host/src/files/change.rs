use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use vmcell_tree::relative;
use vmcell_wire::files::{Answer, ChangeKind as WireKind, Work};

use super::{Entry, Files, Job};
use crate::error::Error;

/// How a path is watched.
///
/// ```
/// use std::time::Duration;
/// use vmcell::files::Watch;
///
/// let everything = Watch::new().recursive().debounce(Duration::from_millis(50));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    recursive: bool,
    debounce: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// A file, or what is in a directory. Changes of one path within 100 ms are
    /// told once.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            recursive: false,
            debounce: Duration::from_millis(100),
        }
    }

    /// Also what is in the directories below it.
    #[must_use]
    pub const fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Changes of one path within this time are told once. Zero: each one at
    /// once.
    #[must_use]
    pub const fn debounce(mut self, time: Duration) -> Self {
        self.debounce = time;
        self
    }
}

/// Something that has changed in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEvent {
    /// What happened.
    pub kind: FileEventKind,
    /// Where, relative to the root of the [`Files`].
    pub path: PathBuf,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileEventKind {
    /// It is there now, and was not. What is renamed is removed under one name
    /// and created under the other.
    Created,
    /// Its contents changed.
    Modified,
    /// Its owner, permissions or times changed.
    Metadata,
    /// It is gone.
    Removed,
    /// So much happened that some of it was not told: look at everything
    /// again.
    Overflow,
}

impl Files {
    /// Tells what changes at a path from now on: when this answers, nothing is
    /// missed any more.
    ///
    /// # Errors
    /// [`Error::File`] if there is nothing, or the guest can watch no more.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn watch(&self, path: impl AsRef<Path>, watch: Watch) -> Result<Watcher, Error> {
        let path = path.as_ref();
        let work = Work::Watch {
            path: self.inside(path)?,
            recursive: watch.recursive,
            debounce_ms: u32::try_from(watch.debounce.as_millis()).unwrap_or(u32::MAX),
        };
        let top = self.below(path)?.to_owned();
        let mut job = self.begin_endless(path, work)?;
        let entry = job
            .next_answer(|answer| super::operations::entry_at(answer, &top))
            .await?;
        let entry = entry.flatten().ok_or_else(Error::unexpected_reply)?;
        Ok(Watcher { job, entry })
    }
}

/// What changes in a guest, as it happens. Dropping it ends the watching.
#[derive(Debug)]
pub struct Watcher {
    job: Job,
    entry: Entry,
}

impl Watcher {
    /// What is watched, as it was when the watching began.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The next change. None: what was watched is gone.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<FileEvent>, Error> {
        let top = &self.entry.path;
        let change = self
            .job
            .next_answer(|answer| change_at(answer, top))
            .await?;
        match change {
            Some(None) => Err(Error::unexpected_reply()),
            Some(change) => Ok(change),
            None => Ok(None),
        }
    }
}

fn change_at(answer: Answer<'_>, top: &Path) -> Option<FileEvent> {
    let Answer::Change(change) = answer else {
        return None;
    };
    let kind = match change.kind {
        WireKind::Created => FileEventKind::Created,
        WireKind::Modified => FileEventKind::Modified,
        WireKind::Metadata => FileEventKind::Metadata,
        WireKind::Removed => FileEventKind::Removed,
        // Who is told something unknown had better look.
        _ => FileEventKind::Overflow,
    };
    let path = match change.path {
        b"" => top.to_owned(),
        path => top.join(relative(path)),
    };
    Some(FileEvent { kind, path })
}
