#[cfg(feature = "archive")]
use std::os::unix::ffi::OsStrExt;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tokio::sync::mpsc;
use vmcell_tree::{
    FilterLines,
    transfer::{Destination, Ownership, ReceiveOptions, Receiver, SpecialBits, TopSymlink},
};
use vmcell_wire::files::{Send, Work};

use super::{Files, push::Progress};
#[cfg(feature = "archive")]
use crate::tree::ArchiveFormat;
use crate::{
    error::Error,
    tree::{Received, TreeError, TreeLimits, TreeProgress},
};

impl Files {
    /// Brings a file or a directory with all that is below it out of the guest:
    /// `to` becomes what `from` is. A directory that is there is added to.
    ///
    /// Whatever the guest sends, nothing is written outside of `to`, no
    /// symbolic link is followed, and no device is made.
    ///
    /// No component of `to` may be a symbolic link, not even one of the caller's
    /// own: it could be one that an earlier pull has brought. The working
    /// directory is taken as it is, links in `/` itself (`/home`, `/tmp`) are
    /// followed, and directories that are missing are made.
    /// Pass the path that a link leads to ([`std::fs::canonicalize`]) to write
    /// there.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let workspace = vm.files().at("/workspace");
    /// workspace.pull("results", "./results").run().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn pull(&self, from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Pull {
        Pull::new(self.clone(), from.into(), Destination::Path(to.into()))
    }

    /// Brings it out as an archive of the host, which appears under its name
    /// when it is complete. For `to` the same holds as in [`pull`](Self::pull).
    #[cfg(feature = "archive")]
    pub fn pull_archive(
        &self,
        from: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
        format: ArchiveFormat,
    ) -> Pull {
        let from = from.into();
        let destination = Destination::ArchiveAt {
            path: to.into(),
            format,
            name: name_in_archive(&from),
        };
        Pull::new(self.clone(), from, destination)
    }

    /// Brings it out as an archive that is written as it comes. What was
    /// written before an error is of no use.
    #[cfg(feature = "archive")]
    pub fn pull_archive_to(
        &self,
        from: impl Into<PathBuf>,
        writer: impl std::io::Write + std::marker::Send + 'static,
        format: ArchiveFormat,
    ) -> Pull {
        let from = from.into();
        let destination = Destination::Archive {
            writer: Box::new(writer),
            format,
            name: name_in_archive(&from),
        };
        Pull::new(self.clone(), from, destination)
    }
}

/// What a tree that is a single entry is called in an archive.
#[cfg(feature = "archive")]
fn name_in_archive(from: &Path) -> Vec<u8> {
    let name = from.file_name().unwrap_or(OsStr::new("tree"));
    name.as_bytes().to_vec()
}

/// A tree that is to be brought out of a guest: see [`Files::pull`].
#[must_use = "nothing happens before it is run"]
pub struct Pull {
    files: Files,
    from: PathBuf,
    destination: Destination,
    filter: FilterLines,
    limits: TreeLimits,
    ownership: Ownership,
    special_bits: SpecialBits,
    top_symlink: TopSymlink,
    progress: Option<Progress>,
}

impl Pull {
    fn new(files: Files, from: PathBuf, destination: Destination) -> Self {
        Self {
            files,
            from,
            destination,
            filter: FilterLines::default(),
            limits: TreeLimits::default(),
            ownership: Ownership::default(),
            special_bits: SpecialBits::default(),
            top_symlink: TopSymlink::default(),
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

    /// A guest that sends more is cut off.
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Entries keep the numbers of their owners and groups, which takes
    /// privileges on the host. Otherwise they belong to this program's user.
    pub fn keep_owners(mut self) -> Self {
        self.ownership = Ownership::Recorded;
        self
    }

    /// The bits setuid, setgid and sticky are kept. A guest that is not to be
    /// trusted can then leave programs on the host that run as somebody else.
    pub fn keep_special_bits(mut self) -> Self {
        self.special_bits = SpecialBits::Keep;
        self
    }

    /// Makes a symbolic link if that is what comes, and not a file or directory
    /// as one would think. Otherwise it is [`TreeError::IsSymlink`]: the link
    /// leads wherever the guest wants, and whoever uses it on the host follows it.
    /// Links inside of a directory always come.
    pub fn allow_symlink(mut self) -> Self {
        self.top_symlink = TopSymlink::Make;
        self
    }

    /// Is told of each entry and each piece of a file.
    pub fn progress(
        mut self,
        progress: impl FnMut(TreeProgress<'_>) + std::marker::Send + 'static,
    ) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Brings it out of the guest.
    ///
    /// # Errors
    /// [`Error::File`] if the guest cannot give it, [`Error::Tree`] if the host
    /// cannot take it or must not. What came before the error stays; no file is
    /// half there, and no archive.
    ///
    /// # Cancel safety
    /// A part of it may be on the host if the future is dropped, no file half.
    pub async fn run(self) -> Result<Received, Error> {
        self.filter.compile()?;
        let work = Work::Send(Send {
            path: self.files.inside(&self.from)?,
            include: self.filter.included(),
            exclude: self.filter.excluded(),
        });
        let mut job = self.files.begin(&self.from, work).await?;
        // The guest's word comes first: without a tree nothing is made here.
        let Some(first) = job.next_bytes().await? else {
            return Err(Error::unexpected_reply());
        };
        let options = ReceiveOptions {
            limits: self.limits,
            ownership: self.ownership,
            special_bits: self.special_bits,
            top_symlink: self.top_symlink,
            progress: self.progress,
        };
        let destination = self.destination;
        let (pieces, queue) = mpsc::channel(QUEUED);
        let receiving = tokio::task::spawn_blocking(move || receive(destination, options, queue));
        let mut next = Some(first);
        while let Some(bytes) = next {
            if pieces.send(Some(bytes)).await.is_err() {
                break;
            }
            next = job.next_bytes().await?;
        }
        // Only now is the tree complete. If the thread has given up, it says
        // why.
        let _ = pieces.send(None).await;
        match receiving.await {
            Ok(received) => Ok(received?),
            Err(_) => Err(TreeError::Gone.into()),
        }
    }
}

/// So many pieces wait between the link and the thread that writes.
const QUEUED: usize = 4;

/// What the writing thread does. A queue that ends without a word ends an
/// unfinished tree.
fn receive(
    destination: Destination,
    options: ReceiveOptions<'static>,
    mut queue: mpsc::Receiver<Option<Bytes>>,
) -> Result<Received, TreeError> {
    let mut receiver = Receiver::new(destination, options)?;
    loop {
        match queue.blocking_recv() {
            Some(Some(bytes)) => receiver.push(&bytes)?,
            Some(None) => return receiver.finish(),
            None => return Err(TreeError::Gone),
        }
    }
}

impl std::fmt::Debug for Pull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pull")
            .field("from", &Path::new(&self.from))
            .finish_non_exhaustive()
    }
}
