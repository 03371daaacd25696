use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use bytes::Bytes;
use tokio::sync::mpsc;
use vmcell_tree::{
    FilterLines,
    transfer::{Gone, Known, SendOptions, Source, send},
};
use vmcell_wire::{
    files::{Answer, FileKind, Receive, Time, Walk, Work},
    pattern::Filter,
};

use super::{FileFailureKind, FileOwner, Files, Job};
use crate::{
    error::Error,
    tree::{LeftOut, Sent, TreeError, TreeLimits, TreeProgress},
};

impl Files {
    /// Brings a file or a directory with all that is below it into the guest:
    /// `to` becomes what `from` is. A directory that is there is added to.
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

    /// Unpacks an archive of the host into a directory of the guest: a `.tar`,
    /// or one compressed with gzip or zstd.
    ///
    /// # Errors
    /// [`Error::Tree`] if it cannot be opened.
    #[cfg(feature = "archive")]
    pub fn push_archive(
        &self,
        archive: impl AsRef<Path>,
        to: impl Into<PathBuf>,
    ) -> Result<Push, Error> {
        let source = Source::archive_at(archive.as_ref())?;
        Ok(Push::new(self.clone(), source, to.into()))
    }
}

#[cfg(feature = "archive")]
impl Files {
    /// Unpacks an archive that is read as it is needed; `name` is what errors
    /// call it.
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

/// A tree that is to be brought into a guest: see [`Files::push`].
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

/// Is told how far a tree has come.
pub(super) type Progress = Box<dyn FnMut(TreeProgress<'_>) + Send>;

/// What counts as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    /// Nothing.
    Never,
    /// The same size and time of the last change.
    Times,
    /// The same bytes.
    Digests,
}

/// What was brought into a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pushed {
    /// How many entries were made or replaced.
    pub entries: u64,
    /// How many bytes their files have.
    pub bytes: u64,
    /// How many entries were there already, unchanged.
    pub unchanged: u64,
    /// How many were left out: neither file nor directory nor link.
    pub left_out: u64,
    /// The first hundred of those.
    pub first_left_out: Vec<LeftOut>,
    /// How many extended attributes could not be taken along.
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

    /// Only what a line like those of a `.gitignore` file names. Can be called
    /// many times.
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Not what a line like those of a `.gitignore` file names. Can be called
    /// many times; a later line can bring back what an earlier one excluded.
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.exclude(line.as_ref());
        self
    }

    /// Larger trees are refused.
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Whose the entries are in the guest, if not as the [`Files`] say.
    pub fn owner(mut self, owner: FileOwner) -> Self {
        self.files.owner = owner;
        self
    }

    /// A file that is there counts as unchanged if its bytes have the same
    /// SHA-256, whatever its time. Otherwise size and time decide.
    pub fn compare_digests(mut self) -> Self {
        self.compare = Compare::Digests;
        self
    }

    /// Everything is sent, also what is there unchanged.
    pub fn everything(mut self) -> Self {
        self.compare = Compare::Never;
        self
    }

    /// It is safe on the guest's disk before it counts as pushed.
    pub fn sync(mut self) -> Self {
        self.sync = true;
        self
    }

    /// Is told of each entry and each piece of a file.
    pub fn progress(mut self, progress: impl FnMut(TreeProgress<'_>) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Brings it into the guest.
    ///
    /// # Errors
    /// [`Error::Tree`] if the host cannot read it, [`Error::File`] if the guest
    /// cannot take it. What came before the error stays; no file is half there.
    ///
    /// # Cancel safety
    /// A part of it may be in the guest if the future is dropped, no file half.
    pub async fn run(self) -> Result<Pushed, Error> {
        let filter = self.filter.compile()?;
        let known = match (&self.source, self.compare) {
            (_, Compare::Never) => None,
            (Source::Path(from), compare) => {
                let digest = compare == Compare::Digests;
                known(&self.files, from, &self.to, &self.filter, digest).await?
            }
            #[cfg(feature = "archive")]
            (Source::Archive { .. }, _) => None,
        };
        let work = Work::Receive(Receive {
            path: self.files.inside(&self.to)?,
            owner: self.files.owner.as_wire(),
            sync: self.sync,
        });
        let mut job = self.files.begin(&self.to, work).await?;
        let task = Sending {
            source: self.source,
            filter,
            limits: self.limits,
            known,
            progress: self.progress,
        };
        let (pieces, queue) = mpsc::channel(QUEUED);
        let sending = tokio::task::spawn_blocking(move || task.run(&pieces));
        feed(&job, queue).await;
        let sent = match sending.await {
            Ok(Ok(sent)) => sent,
            // The guest knows why it took no more.
            Ok(Err(TreeError::Gone)) => {
                job.next_bytes().await?;
                return Err(TreeError::Gone.into());
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(TreeError::Gone.into()),
        };
        if sent.entries == 0 {
            // There is nothing to bring: not even the top.
            return Ok(Pushed::new(sent, 0, 0));
        }
        job.input().end();
        job.only_answer(|answer| match answer {
            Answer::Received { entries, bytes } => Some((entries, bytes)),
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
            left_out: sent.left_out,
            first_left_out: sent.first_left_out,
            lost_xattrs: sent.lost_xattrs,
        }
    }
}

/// So many pieces wait between the thread that reads and the link.
const QUEUED: usize = 4;

/// What the reading thread does.
struct Sending {
    source: Source,
    filter: Filter,
    limits: TreeLimits,
    known: Option<HashMap<Vec<u8>, OnGuest>>,
    progress: Option<Progress>,
}

impl Sending {
    fn run(mut self, pieces: &mpsc::Sender<Bytes>) -> Result<Sent, TreeError> {
        let look_up = |path: &[u8]| self.known.as_ref()?.get(path).map(OnGuest::as_known);
        let options = SendOptions {
            filter: self.filter,
            limits: self.limits,
            known: self.known.is_some().then_some(&look_up),
            progress: self
                .progress
                .as_mut()
                .map(|progress| &mut **progress as &mut dyn FnMut(TreeProgress<'_>)),
        };
        let mut sink = |piece: Bytes| pieces.blocking_send(piece).map_err(|_| Gone);
        send(self.source, options, &mut sink)
    }
}

/// Sends what the thread reads, until there is no more or nobody takes it.
async fn feed(job: &Job, mut queue: mpsc::Receiver<Bytes>) {
    let input = job.input();
    while let Some(piece) = queue.recv().await {
        if !input.write(piece).await {
            return;
        }
    }
}

/// What the guest has at a path.
struct OnGuest {
    kind: FileKind,
    mode: u16,
    size: u64,
    modified: Time,
    target: Vec<u8>,
    digest: Option<[u8; 32]>,
}

impl OnGuest {
    fn as_known(&self) -> Known<'_> {
        Known {
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

/// The most memory for what is known of the guest's entries, and the most
/// entries that are looked at. What is not known is sent.
const MAX_KNOWN: usize = 256 << 20;
const MAX_LOOKED_AT: u64 = 10_000_000;

/// What the guest has of a tree, as far as the host has the same paths, and as
/// far as the limits above go: so a guest that never ends its list can neither
/// make this grow nor hold it up.
async fn known(
    files: &Files,
    from: &Path,
    to: &Path,
    filter: &FilterLines,
    digest: bool,
) -> Result<Option<HashMap<Vec<u8>, OnGuest>>, Error> {
    let work = Work::Walk(Walk {
        path: files.inside(to)?,
        depth: u32::MAX,
        top: true,
        glob: b"",
        include: filter.included(),
        exclude: filter.excluded(),
        sorted: false,
        digest,
        names: false,
    });
    let mut job = files.begin(to, work).await?;
    let mut known = HashMap::new();
    let mut memory = 0;
    for _ in 0..MAX_LOOKED_AT {
        let answer = job.next_answer(|answer| on_guest(answer, from)).await;
        match answer {
            Ok(Some(Some((path, entry)))) => {
                memory += size_of::<(Vec<u8>, OnGuest)>() + path.len() + entry.target.len();
                if memory > MAX_KNOWN {
                    break;
                }
                known.insert(path, entry);
            }
            Ok(Some(None)) => {}
            Ok(None) => break,
            Err(Error::File(failure)) if failure.kind == FileFailureKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(known))
}

fn on_guest(answer: Answer<'_>, from: &Path) -> Option<(Vec<u8>, OnGuest)> {
    // What cannot be looked at is sent.
    let Answer::Entry(entry) = answer else {
        return None;
    };
    let path = vmcell_tree::path(entry.path);
    let below = path.components();
    if !{ below }.all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    from.join(&path).symlink_metadata().ok()?;
    let on_guest = OnGuest {
        kind: entry.kind,
        mode: entry.mode,
        size: entry.size,
        modified: entry.modified,
        target: entry.target.to_vec(),
        digest: entry.digest,
    };
    Some((entry.path.to_vec(), on_guest))
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push")
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}
