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
    /// A program of e2fsprogs is not installed, or not where it was looked for.
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
