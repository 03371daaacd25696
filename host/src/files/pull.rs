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
use vmcell_wire::files::{FileOperation, Send};

use super::{Files, push::Progress};
#[cfg(feature = "archive")]
use crate::tree::ArchiveFormat;
use crate::{
    error::Error,
    tree::{Received, TreeError, TreeLimits, TreeProgress},
};

impl Files {
    /// Copies a file, or a directory with everything below it, out of the
    /// guest: `to` becomes a copy of `from`. An existing directory is merged.
    ///
    /// Whatever the guest sends, nothing is written outside of `to`, no
    /// symbolic link is followed, and no device is created.
    ///
    /// No component of `to` may be a symbolic link, not even one of the
    /// caller's own: an earlier pull may have created it. The working directory
    /// is not checked, links in `/` itself (`/home`, `/tmp`) are followed, and
    /// missing directories are created. To write through a link, pass its
    /// target ([`std::fs::canonicalize`]).
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

    /// Copies a tree out of the guest into an archive file, which appears under
    /// its name when it is complete. `to` has the restrictions of
    /// [`pull`](Self::pull).
    #[cfg(feature = "archive")]
    pub fn pull_archive(
        &self,
        from: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
        format: ArchiveFormat,
    ) -> Pull {
        let from = from.into();
        let destination = Destination::ArchiveFile {
            path: to.into(),
            format,
            name: name_in_archive(&from),
        };
        Pull::new(self.clone(), from, destination)
    }

    /// Copies a tree out of the guest into an archive that is written to
    /// `writer`. After an error, the written bytes are not usable.
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

/// Returns the name in the archive of a tree that is a single entry.
#[cfg(feature = "archive")]
fn name_in_archive(from: &Path) -> Vec<u8> {
    let name = from.file_name().unwrap_or(OsStr::new("tree"));
    name.as_bytes().to_vec()
}

/// A copy out of a guest that is about to start: see [`Files::pull`].
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

    /// Sets the limits. A larger tree fails with [`TreeError::Limit`].
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps the user and group IDs of the guest, which needs privileges on the
    /// host. By default entries belong to the user of this program.
    pub fn keep_owners(mut self) -> Self {
        self.ownership = Ownership::Recorded;
        self
    }

    /// Keeps the setuid, setgid and sticky bits. An untrusted guest can then
    /// leave programs on the host that run as another user.
    pub fn keep_special_bits(mut self) -> Self {
        self.special_bits = SpecialBits::Keep;
        self
    }

    /// Creates a symbolic link if `from` is one. By default that fails with
    /// [`TreeError::IsSymlink`]: the guest chooses the target of the link, and
    /// programs of the host would follow it. Links inside of a directory are
    /// always copied.
    pub fn allow_symlink(mut self) -> Self {
        self.top_symlink = TopSymlink::Allow;
        self
    }

    /// Sets a callback for each entry and each piece of a file.
    pub fn progress(
        mut self,
        progress: impl FnMut(TreeProgress<'_>) + std::marker::Send + 'static,
    ) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Copies the tree.
    ///
    /// # Errors
    /// [`Error::File`] if the guest cannot read it, [`Error::Tree`] if the host
    /// cannot write it or must not. Entries that were complete before the error
    /// stay. No file or archive is incomplete.
    ///
    /// # Cancel safety
    /// If the future is dropped, a part of the tree may be copied, but no file
    /// partially.
    pub async fn run(self) -> Result<Received, Error> {
        self.filter.compile()?;
        let operation = FileOperation::Send(Send {
            path: self.files.relative_bytes(&self.from)?,
            include: self.filter.included(),
            exclude: self.filter.excluded(),
        });
        let mut job = self.files.begin(&self.from, operation).await?;
        // Wait for the guest first: if it has no tree, create nothing here.
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
        let (pieces, queue) = mpsc::channel(QUEUE_LENGTH);
        let receiving = tokio::task::spawn_blocking(move || receive(destination, options, queue));
        let mut next = Some(first);
        while let Some(bytes) = next {
            if pieces.send(Some(bytes)).await.is_err() {
                break;
            }
            next = job.next_bytes().await?;
        }
        // Only now the tree is complete. If the thread has failed, it returns
        // the reason.
        let _ = pieces.send(None).await;
        match receiving.await {
            Ok(received) => Ok(received?),
            Err(_) => Err(TreeError::Aborted.into()),
        }
    }
}

/// The number of pieces between the link and the writing thread.
const QUEUE_LENGTH: usize = 4;

/// The work of the writing thread. `None` ends a complete tree; if the queue
/// just closes, the tree is incomplete.
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
            None => return Err(TreeError::Aborted),
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
