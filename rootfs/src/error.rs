//! What can go wrong, and what to do then.

use std::io;
use std::path::PathBuf;

/// Why an image could not be made or found. Each message says what to do next.
///
/// ```
/// use vmcell_rootfs::{Error, Tree};
///
/// let error = Tree::from_dir("/no/such/folder").unwrap_err();
/// assert!(matches!(error, Error::TreeMissing { .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that is needed is not installed, or not where it was looked for.
    #[error("{tool} not found: `apt-get install {package}` (or add its folder to PATH)")]
    ToolMissing {
        /// The program's name.
        tool: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
    },

    /// The installed e2fsprogs lacks an option that images are made with.
    #[error("e2fsprogs 1.47 or newer is needed, found {found:?}: upgrade the package e2fsprogs")]
    ToolTooOld {
        /// The version line that `mke2fs` printed.
        found: String,
    },

    /// A program was found and could not be started.
    #[error("cannot run {}: check that it is executable on this machine", .path.display())]
    ToolUnusable {
        /// The program that was found.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// A program ran and reported a failure.
    #[error("{tool} failed: {output}")]
    ToolFailed {
        /// The program's name.
        tool: &'static str,
        /// What it printed, on one line and shortened.
        output: String,
    },

    /// The directory to make an image from does not exist.
    #[error("no directory at {}: check the path", .path.display())]
    TreeMissing {
        /// The path as it was given.
        path: PathBuf,
    },

    /// What should be the directory to make an image from is something else.
    #[error("{} is not a directory: give the folder that shall become `/`", .path.display())]
    TreeNotDirectory {
        /// The path as it was given.
        path: PathBuf,
    },

    /// A file or directory of the host could not be read.
    #[error("cannot read {}: check its permissions", .path.display())]
    Read {
        /// What could not be read.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// A file or directory of the host could not be written.
    #[error("cannot write {}: check free space and permissions there", .path.display())]
    Write {
        /// What could not be written.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The host's file system filled up while the image was written.
    #[error("no space left for {}: free some, or choose another folder", .path.display())]
    HostFull {
        /// Where the image was going.
        path: PathBuf,
    },

    /// A path in the image cannot be as asked.
    #[error("bad image path {}: {problem}", .path.display())]
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong with it.
        problem: PathProblem,
    },

    /// Something in an archive cannot become part of a tree.
    #[error("cannot take {} from the archive: {problem}", .path.display())]
    Archive {
        /// Its path in the archive.
        path: PathBuf,
        /// What is wrong with it.
        problem: ArchiveProblem,
    },

    /// An archive could not be read to its end.
    #[error("cannot read the archive: check that it is a whole tar archive, not a compressed one")]
    ArchiveUnreadable {
        /// What is wrong.
        source: io::Error,
    },

    /// The label is longer than the 16 bytes that ext4 has for it, or holds control bytes.
    #[error("bad label {label:?}: use at most 16 bytes, none of them control characters")]
    Label {
        /// The label as it was given.
        label: String,
    },

    /// The epoch is not a time that every tool and kernel agrees on.
    #[error("bad epoch {epoch}: use seconds from 1 to 2147483647")]
    Epoch {
        /// The epoch as it was given.
        epoch: u32,
    },

    /// The tree does not fit into the size that was asked for.
    #[error("the tree does not fit into {size} bytes: {needed} are enough, or use `Size::Fit`")]
    TooSmall {
        /// The size that was asked for.
        size: u64,
        /// A size that will do.
        needed: u64,
    },

    /// `e2fsck` found the new image damaged. It has been deleted.
    #[error("the new image is damaged, please report this: {output}")]
    Damaged {
        /// What `e2fsck` printed, on one line and shortened.
        output: String,
    },

    /// There is no busybox on this machine.
    #[error("busybox not found: `apt-get install busybox-static`, or set VMCELL_BUSYBOX")]
    BusyboxMissing,

    /// The busybox is not a program that runs in an otherwise empty file system.
    #[error(
        "{} is not a static 64-bit program: `apt-get install busybox-static`, or set VMCELL_BUSYBOX",
        .path.display()
    )]
    BusyboxNotStatic {
        /// The busybox that was found.
        path: PathBuf,
    },

    /// The program named busybox does not list its applets.
    #[error(
        "{} does not answer `--list-full` as a busybox does: point VMCELL_BUSYBOX to one",
        .path.display()
    )]
    BusyboxUnusable {
        /// The busybox that was found.
        path: PathBuf,
    },

    /// `mmdebstrap` could not put a Debian together.
    #[error(
        "mmdebstrap failed: {output}; check that `apt-get update` works here or set \
         VMCELL_DEBIAN_MIRROR, and without root `apt-get install uidmap`"
    )]
    BootstrapFailed {
        /// What it printed, on one line and shortened.
        output: String,
    },

    /// Neither `XDG_CACHE_HOME` nor `HOME` says where the cache is.
    #[error("no cache folder: set HOME or XDG_CACHE_HOME to an absolute path")]
    NoCacheFolder,
}

/// What is wrong with a path in an image.
///
/// ```
/// use vmcell_rootfs::{Error, PathProblem, Tree};
///
/// let error = Tree::new().directory("/a/../b", 0o755).unwrap_err();
/// assert!(matches!(error, Error::Path { problem: PathProblem::ParentComponent, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathProblem {
    /// It holds `..`, which has no meaning in an image.
    #[error("write it without `..`")]
    ParentComponent,
    /// A component is longer than ext4's 255 bytes, or the whole is longer than Linux takes.
    #[error("shorten it: names have at most 255 bytes, paths at most 4095")]
    TooLong,
    /// It, or the text of a symbolic link, holds a NUL byte or is empty.
    #[error("it must not be empty or hold a NUL byte")]
    EmptyOrNul,
    /// One of its parents is not a directory.
    #[error("its parent is in the tree already and is not a directory")]
    ParentNotDirectory,
    /// A directory cannot become something else.
    #[error("it is a directory of the tree already: pick another name")]
    IsDirectory,
    /// `/lost+found` is where `e2fsck` puts what it rescues.
    #[error("ext4 keeps this name for a directory of its own: pick another one")]
    Reserved,
    /// Nothing in the tree has this path.
    #[error("nothing in the tree has this path: check the spelling")]
    Missing,
    /// A hard link leads to something that cannot have several names.
    #[error("a hard link must lead to a file of the tree that is not itself a hard link")]
    BadHardLink,
    /// A device number is beyond what `debugfs` takes.
    #[error("device numbers must be at most 65535")]
    DeviceNumber,
    /// The name of an extended attribute holds a line break or a NUL byte.
    #[error("the name of its extended attribute must not hold line breaks or NUL bytes")]
    AttributeName,
}

/// What is wrong with an entry of an archive.
///
/// ```
/// use vmcell_rootfs::{ArchiveProblem, Error, Tree};
///
/// let mut header = tar::Header::new_gnu();
/// header.as_mut_bytes()[..5].copy_from_slice(b"/etc/");
/// header.set_size(0);
/// header.set_cksum();
/// let error = Tree::from_tar(&header.as_bytes()[..]).unwrap_err();
/// assert!(matches!(error, Error::Archive { problem: ArchiveProblem::Absolute, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveProblem {
    /// Its name begins with a slash.
    #[error("make the archive with names that do not begin with a slash")]
    Absolute,
    /// Another entry has the same name.
    #[error("make the archive anew: it has two entries of this name")]
    Twice,
    /// It is a hard link to something that is not before it in the archive.
    #[error("make the archive anew: it is a hard link to no earlier file")]
    HardLink,
    /// It is neither file, directory, link, pipe nor device.
    #[error("leave it out: images have files, directories, links, pipes and devices")]
    Kind,
    /// It is a sparse file, or larger than a plain header can say.
    #[error("make the archive without sparse files, and of files below 8 GiB")]
    Sparse,
    /// What is said about it is no number, or not one that fits.
    #[error("make the archive anew: a number in its header is out of range")]
    Number,
    /// Its name or its attributes are longer than anybody needs.
    #[error("shorten its name and attributes: they have at most 256 KiB")]
    TooLong,
    /// It, together with what is before it, is more than anybody needs.
    #[error("split the archive: it may have 1000000 entries and 64 GiB")]
    TooMuch,
}
