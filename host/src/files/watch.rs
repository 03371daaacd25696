use std::{
    future::poll_fn,
    path::{Path, PathBuf},
    task::{Context, Poll, ready},
    time::Duration,
};

use vmcell_tree::relative_path_from_bytes;
use vmcell_wire::files::{ChangeKind as WireKind, FileOperation, FileReply};

use super::{Entry, Files, Job};
use crate::{error::Error, event_stream::event_stream};

/// How to watch a path.
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
    /// Watches a file, or the entries of a directory. Changes of one path
    /// within 100 ms are reported once.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            recursive: false,
            debounce: Duration::from_millis(100),
        }
    }

    /// Also watches all directories below.
    #[must_use]
    pub const fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Reports changes of one path within this time once; zero reports each
    /// change immediately.
    #[must_use]
    pub const fn debounce(mut self, time: Duration) -> Self {
        self.debounce = time;
        self
    }
}

/// A change in a guest's file system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEvent {
    /// The kind of change.
    pub kind: FileEventKind,
    /// The path, relative to the root of the [`Files`].
    pub path: PathBuf,
}

/// The kind of a [`FileEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum FileEventKind {
    /// The path was created. A rename is reported as removal of the old path
    /// and creation of the new one.
    Created,
    /// The content changed.
    Modified,
    /// The owner, permissions or times changed.
    Metadata,
    /// The path was removed.
    Removed,
    /// Too many changes happened, and some were not reported: list everything
    /// again.
    Overflow,
}

impl Files {
    /// Watches a path for changes. When this returns, every later change is
    /// reported.
    ///
    /// # Errors
    /// [`Error::File`] if the path does not exist, or the guest's limit of
    /// watches is reached.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn watch(&self, path: impl AsRef<Path>, watch: Watch) -> Result<Watcher, Error> {
        let path = path.as_ref();
        let operation = FileOperation::Watch {
            path: self.relative_bytes(path)?,
            recursive: watch.recursive,
            debounce_ms: u32::try_from(watch.debounce.as_millis()).unwrap_or(u32::MAX),
        };
        let top = self.relative_path(path)?.to_owned();
        let mut job = self.begin_without_permit(path, operation)?;
        let entry = job
            .next_answer(|answer| super::operations::entry_at(answer, &top))
            .await?;
        let entry = entry.flatten().ok_or_else(Error::unexpected_reply)?;
        Ok(Watcher {
            job,
            entry,
            failed: false,
        })
    }
}

/// Reports changes of a watched path. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watcher {
    job: Job,
    entry: Entry,
    failed: bool,
}

event_stream!(Watcher, FileEvent);

impl Watcher {
    /// Returns the watched entry, as it was when the watch started.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Waits for the next change. Returns `None` if the watched entry was
    /// removed.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<FileEvent>, Error> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<FileEvent>, Error>> {
        let top = &self.entry.path;
        let with = |answer: FileReply<'_>| change_at(answer, top);
        Poll::Ready(match ready!(self.job.poll_answer(context, with))? {
            Some(None) => Err(Error::unexpected_reply()),
            Some(change) => Ok(change),
            None => Ok(None),
        })
    }
}

fn change_at(answer: FileReply<'_>, top: &Path) -> Option<FileEvent> {
    let FileReply::Change(change) = answer else {
        return None;
    };
    let kind = match change.kind {
        WireKind::Created => FileEventKind::Created,
        WireKind::Modified => FileEventKind::Modified,
        WireKind::Metadata => FileEventKind::Metadata,
        WireKind::Removed => FileEventKind::Removed,
        // After a change of an unknown kind, the caller should list everything.
        _ => FileEventKind::Overflow,
    };
    let path = match change.path {
        b"" => top.to_owned(),
        path => top.join(relative_path_from_bytes(path)),
    };
    Some(FileEvent { kind, path })
}
