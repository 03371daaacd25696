//! Copying trees from a disk to the host.

mod chunk_writer;
mod file_budget;
mod pending_directories;
mod sender;

use std::{ffi::OsStr, fmt, path::PathBuf, thread};
#[cfg(feature = "archive")]
use std::{io::Write, os::unix::ffi::OsStrExt as _, path::Path};

use self::{
    chunk_writer::{ChunkWriter, receive},
    file_budget::{FileBudget, Holes},
    sender::Sender,
};
use super::{Disk, DiskError, DiskProblem, entry_filter::compile_filter, ext4::SymlinkPolicy};
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
    /// Copies a file, or a directory with everything below it, to the host.
    /// `to` is the path of the copy itself, not of the directory to put it in.
    /// An existing directory is merged with the copy.
    ///
    /// The same rules apply as for files copied out of a running guest: nothing
    /// is written outside of `to`, no symlink is followed, and no device is
    /// created.
    ///
    /// No component of `to` may be a symlink, not even one that the caller
    /// created: it could come from an earlier export. The working directory is
    /// used as it is, symlinks directly in `/` (`/home`, `/tmp`) are followed,
    /// and missing directories are created. To write through a symlink, pass
    /// the path that [`std::fs::canonicalize`] returns.
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

    /// Copies a file or directory to an archive on the host. The archive
    /// appears under its name when it is complete. The rules of
    /// [`export`](Self::export) for `to` apply.
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

    /// Writes a file or directory to `writer` as an archive. After an error,
    /// discard what was written.
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

/// Returns the name in the archive of a tree that is not a directory.
#[cfg(feature = "archive")]
fn name_in_archive(from: &Path) -> Vec<u8> {
    let name = from.file_name().unwrap_or(OsStr::new("tree"));
    name.as_bytes().to_vec()
}

/// An export that has not started. Returned by [`Disk::export`].
#[must_use = "nothing happens before it is run"]
pub struct Export<'d> {
    disk: &'d Disk,
    from: PathBuf,
    destination: Destination,
    filter: FilterLines,
    options: ReceiveOptions<'d>,
}

/// The result of an export.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// What was created on the host, and what was skipped because it is not a
    /// file, directory or symlink.
    pub received: Received,
    /// The entries that could not be read: the first hundred.
    pub problems: Vec<DiskProblem>,
    /// The number of entries that could not be read.
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

    /// Exports only what matches this pattern, in the syntax of a `.gitignore`
    /// line. Can be called several times.
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Skips what matches this pattern, in the syntax of a `.gitignore` line.
    /// Can be called several times; a later line that starts with `!` includes
    /// again what an earlier one excluded.
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.exclude(line.as_ref());
        self
    }

    /// Sets limits on what is written to the host. A file that would exceed
    /// them is left out and listed in the result; too many entries end the
    /// export.
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Keeps the numeric owners and groups, which needs privileges on the host.
    /// By default, everything belongs to the user of this program.
    pub fn keep_owners(mut self) -> Self {
        self.options.ownership = Ownership::Recorded;
        self
    }

    /// Keeps the setuid, setgid and sticky bits. An untrusted disk can then
    /// place programs on the host that run with another user's privileges.
    pub fn keep_special_bits(mut self) -> Self {
        self.options.special_bits = SpecialBits::Keep;
        self
    }

    /// Allows the exported path itself to be a symlink, which is then created
    /// on the host. By default it fails with [`TreeError::IsSymlink`], since
    /// the disk chooses the target and programs on the host would follow it.
    /// Symlinks inside an exported directory are always created.
    pub fn allow_symlink(mut self) -> Self {
        self.options.top_symlink = TopSymlink::Allow;
        self
    }

    /// Calls a function for each entry and each chunk of a file, on the thread
    /// that writes.
    pub fn progress(mut self, progress: impl FnMut(TreeProgress<'_>) + Send + 'd) -> Self {
        self.options.progress = Some(Box::new(progress));
        self
    }

    /// Runs the export. Entries that cannot be read are listed in the result;
    /// the others are exported.
    ///
    /// # Errors
    /// [`DiskError::NotFound`]; [`DiskError::Tree`] if writing to the host
    /// fails or is not allowed, or if the image cannot be read in the middle of
    /// a file. What was exported before the error stays. No file and no archive
    /// is left incomplete.
    pub fn run(self) -> Result<Exported, DiskError> {
        let filter = compile_filter(&self.filter)?;
        // Look up the path first: if it does not exist, nothing is created on
        // the host.
        let (top, path) = self.disk.find_inode(&self.from, SymlinkPolicy::Parents)?;
        let holes = match &self.destination {
            Destination::Path(_) => Holes::Kept,
            #[cfg(feature = "archive")]
            _ => Holes::Filled,
        };
        let budget = FileBudget::new(self.options.limits, holes);
        let receiver = Receiver::new(self.destination, self.options)?;
        let (chunks, queue) = ChunkWriter::new();
        let (sent, received) = thread::scope(|scope| {
            let receiving = scope.spawn(|| receive(receiver, queue));
            let sent = Sender::new(self.disk, chunks, filter, path, budget).send(&top);
            (sent, receiving.join().unwrap_or(Err(TreeError::Aborted)))
        });
        // If the sender ended because the receiver failed, report the
        // receiver's error.
        let (report, mut received) = match (sent, received) {
            (Err(DiskError::Tree(TreeError::Aborted)), Err(error)) => return Err(error.into()),
            (sent, received) => (sent?, received?),
        };
        received.lost_xattrs += report.lost_xattrs;
        Ok(Exported {
            received,
            problems: report.problems,
            problem_count: report.problem_count,
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
