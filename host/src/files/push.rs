use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use bytes::Bytes;
use tokio::sync::mpsc;
use vmcell_tree::{
    FilterLines,
    transfer::{ExistingEntry, SendOptions, SinkClosed, Source, send},
};
use vmcell_wire::{
    files::{FileKind, FileOperation, FileReply, Receive, Time, Walk},
    pattern::Filter,
};

use super::{FileFailureKind, FileOwner, Files, Job};
use crate::{
    error::Error,
    tree::{Sent, SkippedEntry, TreeError, TreeLimits, TreeProgress},
};

impl Files {
    /// Copies a file, or a directory with everything below it, into the guest:
    /// `to` becomes a copy of `from`. An existing directory is merged.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let workspace = vm.files().at("/workspace");
    /// let pushed = workspace.push("my-project", "").exclude("target/").run().await?;
    /// println!("{} entries, {} unchanged", pushed.entries, pushed.unchanged);
    /// # Ok(())
    /// # }
    /// ```
    pub fn push(&self, from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Push {
        Push::new(self.clone(), Source::Path(from.into()), to.into())
    }

    /// Unpacks an archive of the host into a directory of the guest: a tar
    /// archive, plain or compressed with gzip or zstd.
    ///
    /// # Errors
    /// [`Error::Tree`] if it cannot be opened.
    #[cfg(feature = "archive")]
    pub fn push_archive(
        &self,
        archive: impl AsRef<Path>,
        to: impl Into<PathBuf>,
    ) -> Result<Push, Error> {
        let source = Source::archive_file(archive.as_ref())?;
        Ok(Push::new(self.clone(), source, to.into()))
    }
}

#[cfg(feature = "archive")]
impl Files {
    /// Unpacks an archive from a reader. `name` is its name in error messages.
    pub fn push_archive_from(
        &self,
        reader: impl std::io::Read + Send + 'static,
        name: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
    ) -> Push {
        let source = Source::Archive {
            reader: Box::new(reader),
            name: name.into(),
        };
        Push::new(self.clone(), source, to.into())
    }
}

/// A copy into a guest that is about to start: see [`Files::push`].
#[must_use = "nothing happens before it is run"]
pub struct Push {
    files: Files,
    source: Source,
    to: PathBuf,
    filter: FilterLines,
    limits: TreeLimits,
    compare: Compare,
    sync: bool,
    progress: Option<Progress>,
}

/// Called with the progress of a transfer.
pub(super) type Progress = Box<dyn FnMut(TreeProgress<'_>) + Send>;

/// Which entries count as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    /// None.
    Never,
    /// Those with the same size and modification time.
    Times,
    /// Those with the same content.
    Digests,
}

/// The result of a [`Push`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Pushed {
    /// The number of entries that were created or replaced.
    pub entries: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
    /// The number of entries that the guest had already, unchanged.
    pub unchanged: u64,
    /// The number of skipped entries: not a file, directory or symbolic link,
    /// or not readable.
    #[cfg_attr(feature = "serde", serde(rename = "left_out"))]
    pub skipped: u64,
    /// The first hundred skipped entries.
    #[cfg_attr(feature = "serde", serde(rename = "first_left_out"))]
    pub first_skipped: Vec<SkippedEntry>,
    /// The number of extended attributes that could not be copied.
    pub lost_xattrs: u64,
}

impl Push {
    fn new(files: Files, source: Source, to: PathBuf) -> Self {
        Self {
            files,
            source,
            to,
            filter: FilterLines::default(),
            limits: TreeLimits::default(),
            compare: Compare::Times,
            sync: false,
            progress: None,
        }
    }

    /// Copies only entries that match a pattern in `.gitignore` syntax. Can be
    /// called several times.
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Skips entries that match a pattern in `.gitignore` syntax. Can be called
    /// several times; a later `!pattern` can include again what an earlier one
    /// excluded.
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.exclude(line.as_ref());
        self
    }

    /// Sets the limits. Larger trees are rejected.
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the owner in the guest, instead of the one of the [`Files`].
    pub fn owner(mut self, owner: FileOwner) -> Self {
        self.files.owner = owner;
        self
    }

    /// Compares existing files by their SHA-256, whatever their times. By
    /// default size and time decide.
    pub fn compare_digests(mut self) -> Self {
        self.compare = Compare::Digests;
        self
    }

    /// Sends everything, even entries that the guest has unchanged.
    pub fn send_unchanged(mut self) -> Self {
        self.compare = Compare::Never;
        self
    }

    /// Syncs the entries to the guest's disk before the push completes.
    pub fn sync(mut self) -> Self {
        self.sync = true;
        self
    }

    /// Sets a callback for each entry and each piece of a file.
    pub fn progress(mut self, progress: impl FnMut(TreeProgress<'_>) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Copies the tree.
    ///
    /// # Errors
    /// [`Error::Tree`] if the host cannot read it, [`Error::File`] if the guest
    /// cannot write it. Entries that were complete before the error stay. No
    /// file is incomplete.
    ///
    /// # Cancel safety
    /// If the future is dropped, a part of the tree may be copied, but no file
    /// partially.
    pub async fn run(self) -> Result<Pushed, Error> {
        let filter = self.filter.compile()?;
        let existing = match (&self.source, self.compare) {
            (_, Compare::Never) => None,
            (Source::Path(from), compare) => {
                let digest = compare == Compare::Digests;
                guest_entries(&self.files, from, &self.to, &self.filter, digest).await?
            }
            #[cfg(feature = "archive")]
            (Source::Archive { .. }, _) => None,
        };
        let operation = FileOperation::Receive(Receive {
            path: self.files.relative_bytes(&self.to)?,
            owner: self.files.owner.as_wire(),
            sync: self.sync,
        });
        let mut job = self.files.begin(&self.to, operation).await?;
        let task = SendTask {
            source: self.source,
            filter,
            limits: self.limits,
            existing,
            progress: self.progress,
        };
        let (pieces, queue) = mpsc::channel(QUEUE_LENGTH);
        let sending = tokio::task::spawn_blocking(move || task.run(&pieces));
        feed(&job, queue).await;
        let sent = match sending.await {
            Ok(Ok(sent)) => sent,
            // The guest's answer contains the reason.
            Ok(Err(TreeError::Aborted)) => {
                job.next_bytes().await?;
                return Err(TreeError::Aborted.into());
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(TreeError::Aborted.into()),
        };
        if sent.entries == 0 {
            // Nothing was sent, not even the top.
            return Ok(Pushed::new(sent, 0, 0));
        }
        job.input().end();
        job.single_answer(|answer| match answer {
            FileReply::Received { entries, bytes } => Some((entries, bytes)),
            _ => None,
        })
        .await
        .map(|(entries, bytes)| Pushed::new(sent, entries, bytes))
    }
}

impl Pushed {
    fn new(sent: Sent, entries: u64, bytes: u64) -> Self {
        Self {
            entries,
            bytes,
            unchanged: sent.unchanged,
            skipped: sent.skipped,
            first_skipped: sent.first_skipped,
            lost_xattrs: sent.lost_xattrs,
        }
    }
}

/// The number of pieces between the reading thread and the link.
const QUEUE_LENGTH: usize = 4;

/// The work of the reading thread.
struct SendTask {
    source: Source,
    filter: Filter,
    limits: TreeLimits,
    existing: Option<HashMap<Vec<u8>, GuestEntry>>,
    progress: Option<Progress>,
}

impl SendTask {
    fn run(mut self, pieces: &mpsc::Sender<Bytes>) -> Result<Sent, TreeError> {
        let look_up = |path: &[u8]| {
            self.existing
                .as_ref()?
                .get(path)
                .map(GuestEntry::as_existing)
        };
        let options = SendOptions {
            filter: self.filter,
            limits: self.limits,
            existing: self.existing.is_some().then_some(&look_up),
            progress: self
                .progress
                .as_mut()
                .map(|progress| &mut **progress as &mut dyn FnMut(TreeProgress<'_>)),
        };
        let mut sink = |piece: Bytes| pieces.blocking_send(piece).map_err(|_| SinkClosed);
        send(self.source, options, &mut sink)
    }
}

/// Sends the pieces to the guest, until there are no more or it stops reading.
async fn feed(job: &Job, mut queue: mpsc::Receiver<Bytes>) {
    let input = job.input();
    while let Some(piece) = queue.recv().await {
        if !input.write(piece).await {
            return;
        }
    }
}

/// An entry that the guest already has.
struct GuestEntry {
    kind: FileKind,
    mode: u16,
    size: u64,
    modified: Time,
    target: Vec<u8>,
    digest: Option<[u8; 32]>,
}

impl GuestEntry {
    fn as_existing(&self) -> ExistingEntry<'_> {
        ExistingEntry {
            kind: self.kind,
            mode: self.mode,
            size: self.size,
            modified: self.modified,
            owner: None,
            target: &self.target,
            digest: self.digest,
        }
    }
}

/// The limits for the guest's entries: the memory, and the number to examine.
/// Entries beyond them are sent.
const MAX_GUEST_ENTRY_BYTES: usize = 256 << 20;
const MAX_GUEST_ENTRIES: u64 = 10_000_000;

/// Returns the guest's entries at paths that the host has too, up to the limits
/// above. So a guest that never ends its list can neither fill the memory nor
/// delay this forever.
async fn guest_entries(
    files: &Files,
    from: &Path,
    to: &Path,
    filter: &FilterLines,
    digest: bool,
) -> Result<Option<HashMap<Vec<u8>, GuestEntry>>, Error> {
    let operation = FileOperation::Walk(Walk {
        path: files.relative_bytes(to)?,
        depth: u32::MAX,
        top: true,
        glob: b"",
        include: filter.included(),
        exclude: filter.excluded(),
        sorted: false,
        digest,
        names: false,
    });
    let mut job = files.begin(to, operation).await?;
    let mut existing = HashMap::new();
    let mut memory = 0;
    for _ in 0..MAX_GUEST_ENTRIES {
        let answer = job.next_answer(|answer| guest_entry(answer, from)).await;
        match answer {
            Ok(Some(Some((path, entry)))) => {
                memory += size_of::<(Vec<u8>, GuestEntry)>() + path.len() + entry.target.len();
                if memory > MAX_GUEST_ENTRY_BYTES {
                    break;
                }
                existing.insert(path, entry);
            }
            Ok(Some(None)) => {}
            Ok(None) => break,
            Err(Error::File(failure)) if failure.kind == FileFailureKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(existing))
}

fn guest_entry(answer: FileReply<'_>, from: &Path) -> Option<(Vec<u8>, GuestEntry)> {
    // Entries that the guest cannot read are sent.
    let FileReply::Entry(entry) = answer else {
        return None;
    };
    let path = vmcell_tree::path_from_bytes(entry.path);
    let below = path.components();
    if !{ below }.all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    from.join(&path).symlink_metadata().ok()?;
    let guest_entry = GuestEntry {
        kind: entry.kind,
        mode: entry.mode,
        size: entry.size,
        modified: entry.modified,
        target: entry.target.to_vec(),
        digest: entry.digest,
    };
    Some((entry.path.to_vec(), guest_entry))
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push")
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}
