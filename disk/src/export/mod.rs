//! Trees of a disk, brought to the host.

mod directories;
mod pieces;
mod sender;

use std::{ffi::OsStr, fmt, path::PathBuf, thread};
#[cfg(feature = "archive")]
use std::{io::Write, os::unix::ffi::OsStrExt as _, path::Path};

use self::{
    pieces::{Pieces, receive},
    sender::Sender,
};
use super::{Disk, DiskError, DiskProblem, choice::filter, ext4::SymlinkPolicy};
#[cfg(feature = "archive")]
use vmcell_tree::transfer::ArchiveFormat;
use vmcell_tree::{
    FilterLines,
    transfer::{
        Destination, Ownership, ReceiveOptions, Received, Receiver, SpecialBits, TopSymlink,
        TreeError, TreeLimits, TreeProgress,
    },
};

impl Disk {
    /// Brings a file or a directory with all that is below it to the host: `to`
    /// becomes what `from` is. A directory that is there is added to.
    ///
    /// The rules are those for what comes out of a running guest: nothing is
    /// written outside of `to`, no symbolic link is followed, and no device is
    /// made.
    ///
    /// No component of `to` may be a symbolic link, not even one of the caller's
    /// own: it could be one that an earlier export has brought. The working
    /// directory is taken as it is, links in `/` itself (`/home`, `/tmp`) are
    /// followed, and directories that are missing are made.
    /// Pass the path that a link leads to ([`std::fs::canonicalize`]) to write
    /// there.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), vmcell_disk::DiskError> {
    /// let disk = vmcell_disk::Disk::open("stopped.qcow2")?;
    /// disk.export("/workspace/results", "./results").run()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn export(&self, from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Export<'_> {
        Export::new(self, from.into(), Destination::Path(to.into()))
    }

    /// Brings it to the host as an archive, which appears under its name when it
    /// is complete. For `to` the same holds as in [`export`](Self::export).
    #[cfg(feature = "archive")]
    pub fn export_archive(
        &self,
        from: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
        format: ArchiveFormat,
    ) -> Export<'_> {
        let from = from.into();
        let destination = Destination::ArchiveFile {
            path: to.into(),
            format,
            name: name_in_archive(&from),
        };
        Export::new(self, from, destination)
    }

    /// Writes it as an archive. What was written before an error is of no use.
    #[cfg(feature = "archive")]
    pub fn export_archive_to(
        &self,
        from: impl Into<PathBuf>,
        writer: impl Write + Send + 'static,
        format: ArchiveFormat,
    ) -> Export<'_> {
        let from = from.into();
        let destination = Destination::Archive {
            writer: Box::new(writer),
            format,
            name: name_in_archive(&from),
        };
        Export::new(self, from, destination)
    }
}

/// What a tree that is a single entry is called in an archive.
#[cfg(feature = "archive")]
fn name_in_archive(from: &Path) -> Vec<u8> {
    let name = from.file_name().unwrap_or(OsStr::new("tree"));
    name.as_bytes().to_vec()
}

/// A tree that is to be brought to the host: see [`Disk::export`].
#[must_use = "nothing happens before it is run"]
pub struct Export<'d> {
    disk: &'d Disk,
    from: PathBuf,
    destination: Destination,
    filter: FilterLines,
    options: ReceiveOptions<'d>,
}

/// What was brought to the host, and what is missing.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// What was made there, and what was left out because it is no file,
    /// directory or link.
    pub received: Received,
    /// What could not be read: the first hundred.
    pub problems: Vec<DiskProblem>,
    /// How much could not be read.
    pub problem_count: u64,
}

impl<'d> Export<'d> {
    fn new(disk: &'d Disk, from: PathBuf, destination: Destination) -> Self {
        Self {
            disk,
            from,
            destination,
            filter: FilterLines::default(),
            options: ReceiveOptions::default(),
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

    /// A disk that holds more is cut off.
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Entries keep the numbers of their owners and groups, which takes
    /// privileges on the host. Otherwise they belong to this program's user.
    pub fn keep_owners(mut self) -> Self {
        self.options.ownership = Ownership::Recorded;
        self
    }

    /// The bits setuid, setgid and sticky are kept. A disk that is not to be
    /// trusted can then leave programs on the host that run as somebody else.
    pub fn keep_special_bits(mut self) -> Self {
        self.options.special_bits = SpecialBits::Keep;
        self
    }

    /// Makes a symbolic link if that is what comes, and not a file or directory
    /// as one would think. Otherwise it is [`TreeError::IsSymlink`]: the link
    /// leads wherever the disk wants, and whoever uses it on the host follows it.
    /// Links inside of a directory always come.
    pub fn allow_symlink(mut self) -> Self {
        self.options.top_symlink = TopSymlink::Allow;
        self
    }

    /// Is told of each entry and each piece of a file, from the thread that
    /// writes.
    pub fn progress(mut self, progress: impl FnMut(TreeProgress<'_>) + Send + 'd) -> Self {
        self.options.progress = Some(Box::new(progress));
        self
    }

    /// Brings it to the host. What cannot be read is told in the result; the
    /// rest is there.
    ///
    /// # Errors
    /// [`DiskError::NotFound`]; [`DiskError::Tree`] if the host cannot take it
    /// or must not, or if the image fails within a file. What came before the
    /// error stays; no file is half there, and no archive.
    pub fn run(self) -> Result<Exported, DiskError> {
        let filter = filter(&self.filter)?;
        // Without a tree nothing is made on the host.
        let (top, path) = self.disk.find_inode(&self.from, SymlinkPolicy::Parents)?;
        let receiver = Receiver::new(self.destination, self.options)?;
        let (pieces, queue) = Pieces::new();
        let (sent, received) = thread::scope(|scope| {
            let receiving = scope.spawn(|| receive(receiver, queue));
            let sent = Sender::new(self.disk, pieces, filter, path).send(&top);
            (sent, receiving.join().unwrap_or(Err(TreeError::Aborted)))
        });
        // Who had to end because of the other has no news.
        let (told, mut received) = match (sent, received) {
            (Err(DiskError::Tree(TreeError::Aborted)), Err(error)) => return Err(error.into()),
            (sent, received) => (sent?, received?),
        };
        received.lost_xattrs += told.lost_xattrs;
        Ok(Exported {
            received,
            problems: told.problems,
            problem_count: told.problem_count,
        })
    }
}

impl fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}
