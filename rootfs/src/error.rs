//! Errors of this crate.

use std::io;
use std::path::PathBuf;

/// Why an image could not be built or looked up. Each message suggests what to do next.
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
    /// A required program was not found in the searched folders.
    #[error("{tool} not found: `apt-get install {package}` (or add its folder to PATH)")]
    ToolMissing {
        /// The program's name.
        tool: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
    },

    /// The installed e2fsprogs lacks an option that building needs.
    #[error("e2fsprogs 1.47 or newer is needed, found {found:?}: upgrade the package e2fsprogs")]
    ToolTooOld {
        /// The version line that `mke2fs` printed.
        found: String,
    },

    /// A program was found but could not be started.
    #[error("cannot run {}: check that it is executable on this machine", .path.display())]
    ToolUnusable {
        /// The program that was found.
        path: PathBuf,
        /// The error of the operating system.
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

    /// The directory to build an image from does not exist.
    #[error("no directory at {}: check the path", .path.display())]
    TreeMissing {
        /// The path as it was given.
        path: PathBuf,
    },

    /// The path to build an image from is not a directory.
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
        /// The error of the operating system.
        source: io::Error,
    },

    /// A file or directory of the host could not be written.
    #[error("cannot write {}: check free space and permissions there", .path.display())]
    Write {
        /// What could not be written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The host's file system filled up while the image was written.
    #[error("no space left for {}: free some, or choose another folder", .path.display())]
    HostFull {
        /// Where the image was going.
        path: PathBuf,
    },

    /// A path is not valid in the image.
    #[error("bad image path {}: {problem}", .path.display())]
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong with it.
        problem: PathProblem,
    },

    /// An entry of an archive was rejected.
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

    /// The label is longer than ext4's 16 bytes, or contains control characters.
    #[error("bad label {label:?}: use at most 16 bytes, none of them control characters")]
    Label {
        /// The label as it was given.
        label: String,
    },

    /// The epoch is outside the range that all tools support, 1 to 2147483647.
    #[error("bad epoch {epoch}: use seconds from 1 to 2147483647")]
    Epoch {
        /// The epoch as it was given.
        epoch: u32,
    },

    /// The tree does not fit into the requested size.
    #[error("the tree does not fit into {size} bytes: {needed} are enough, or use `Size::Fit`")]
    TooSmall {
        /// The requested size.
        size: u64,
        /// A sufficient size.
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

    /// The busybox is not statically linked, so it would not run in the image.
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

    /// `mmdebstrap` failed.
    #[error(
        "mmdebstrap failed: {output}; check that `apt-get update` works here or set \
         VMCELL_DEBIAN_MIRROR, and without root `apt-get install uidmap`"
    )]
    BootstrapFailed {
        /// What it printed, on one line and shortened.
        output: String,
    },

    /// An image of a container cannot be used.
    #[error("cannot use the image {image}: {problem}")]
    Image {
        /// The image as it was given.
        image: String,
        /// What is wrong.
        problem: crate::oci::ImageProblem,
    },

    /// A name cannot be that of an environment.
    #[error(
        "{name:?} cannot be the name of an environment: use at most 64 lower-case letters, digits \
         and `.`, `_`, `-`, and not the name of a recipe"
    )]
    EnvironmentName {
        /// The name as it was given.
        name: String,
    },

    /// There is no such environment.
    #[error("no environment that was imported is called {name:?}")]
    NoEnvironment {
        /// The name as it was given.
        name: String,
    },

    /// The disk image of an environment was removed.
    #[error("the image of the environment {name:?} is gone: import it again from {source_name}")]
    ImageGone {
        /// The name of the environment.
        name: String,
        /// Where it was from.
        source_name: String,
    },

    /// Neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
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
    /// It contains `..`.
    #[error("write it without `..`")]
    ParentComponent,
    /// A component is longer than 255 bytes (ext4), or the path longer than 4095 (Linux).
    #[error("shorten it: names have at most 255 bytes, paths at most 4095")]
    TooLong,
    /// It, or the target of a symbolic link, is empty or contains a NUL byte.
    #[error("it must not be empty or hold a NUL byte")]
    EmptyOrNul,
    /// One of its parents is not a directory.
    #[error("its parent is in the tree already and is not a directory")]
    ParentNotDirectory,
    /// The path is a directory already, and another kind of entry cannot replace it.
    #[error("it is a directory of the tree already: pick another name")]
    IsDirectory,
    /// `/lost+found` must be a directory: `e2fsck` puts recovered files there.
    #[error("ext4 keeps this name for a directory of its own: pick another one")]
    Reserved,
    /// Nothing in the tree has this path.
    #[error("nothing in the tree has this path: check the spelling")]
    Missing,
    /// A hard link refers to a missing entry, a directory or another hard link.
    #[error("a hard link must lead to a file of the tree that is not itself a hard link")]
    BadHardLink,
    /// A device number is larger than `debugfs` accepts.
    #[error("device numbers must be at most 65535")]
    DeviceNumber,
    /// The name of an extended attribute contains a line break or a NUL byte.
    #[error("the name of its extended attribute must not hold line breaks or NUL bytes")]
    AttributeName,
}

/// What is wrong with an entry of an archive.
///
/// ```
/// use vmcell_rootfs::{ArchiveProblem, Error, Tree};
///
/// let mut header = tar::Header::new_gnu();
/// header.as_mut_bytes()[..4].copy_from_slice(b"link");
/// header.set_entry_type(tar::EntryType::Link);
/// header.set_size(0);
/// header.set_cksum();
/// let error = Tree::from_tar(&header.as_bytes()[..]).unwrap_err();
/// assert!(matches!(error, Error::Archive { problem: ArchiveProblem::BadHardLink, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveProblem {
    /// Another entry has the same name.
    #[error("the archive has two entries of this name: recreate it")]
    Duplicate,
    /// It is a hard link whose target is not an earlier file of the archive.
    #[error("it is a hard link to no earlier file of the archive: recreate the archive")]
    BadHardLink,
    /// It is neither a file, directory, link, pipe nor device.
    #[error("only files, directories, links, pipes and devices are supported: leave it out")]
    UnsupportedKind,
    /// It is a sparse file in an unknown format.
    #[error("sparse files of this format are not supported: use `tar --sparse --format=posix`")]
    Sparse,
    /// A number or a pax record in its header is malformed or out of range.
    #[error("a number in its header is malformed or out of range: recreate the archive")]
    BadNumber,
    /// Its name and attributes exceed 256 KiB, or it is a sparse file of over a million parts.
    #[error("its name, its attributes or its map of holes is too long: shorten it")]
    TooLong,
    /// The archive up to this entry exceeds the limits on entries or bytes.
    #[error("the archive exceeds 1000000 entries or 64 GiB: split it")]
    TooLarge,
    /// The names of the archive up to this entry take too much memory.
    #[error(
        "the archive has too many files, or too long names: some 300000 fit into an image, split it"
    )]
    TooManyNames,
}
