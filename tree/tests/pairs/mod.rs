//! All pairs of what exists at a destination and what is written there.
//!
//! All code that writes what comes from a guest is tested with them: the
//! receiver of trees, `Files::pull`, `Disk::export`, `vmcell cp`, `vmcell run
//! --pull` and `vmcell-disk export`, each also for archives if it supports
//! them. Nothing may ever change outside of the destination.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// What exists at a destination before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum There {
    Nothing,
    File,
    EmptyDirectory,
    /// With symlinks to the outside, under every name that can be written.
    FullDirectory,
    SymlinkToDirectory,
    SymlinkToFile,
    DanglingSymlink,
    Fifo,
    Socket,
    /// Nothing, but the parent directory is a symlink.
    BelowSymlink,
    /// Nothing, and a directory further up is a symlink.
    FarBelowSymlink,
    /// Nothing, but a file is where the parent directory should be.
    BelowFile,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coming {
    File,
    /// With a file, a directory, symlinks and a file with two hard links.
    Directory,
    EmptyDirectory,
    Symlink,
    DanglingSymlink,
    /// A file that has a second hard link beside it.
    HardLink,
}

/// How it is written to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The incoming entry becomes the destination.
    Exact,
    /// Same, and symbolic links are allowed.
    AllowSymlink,
    /// If the destination is a directory, the entry is written into it under
    /// its own name.
    LikeCp,
    /// The entry is packed into an archive, which becomes the destination.
    Archive,
}

/// The expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The destination is the incoming entry, and nothing else.
    Made,
    /// The incoming entries were added to the existing directory.
    Added,
    /// Nothing was changed. The error contains this text.
    Refused(&'static str),
}

pub(crate) const THROUGH_SYMLINK: &str = "cannot write through the symbolic link";
pub(crate) const IS_SYMLINK: &str = "what comes is a symbolic link";
const IN_THE_WAY: &str = "a directory is in the way";
const NOT_A_DIRECTORY: &str = "is not a directory";

const THERE: [There; 12] = [
    There::Nothing,
    There::File,
    There::EmptyDirectory,
    There::FullDirectory,
    There::SymlinkToDirectory,
    There::SymlinkToFile,
    There::DanglingSymlink,
    There::Fifo,
    There::Socket,
    There::BelowSymlink,
    There::FarBelowSymlink,
    There::BelowFile,
];

const COMING: [Coming; 6] = [
    Coming::File,
    Coming::Directory,
    Coming::EmptyDirectory,
    Coming::Symlink,
    Coming::DanglingSymlink,
    Coming::HardLink,
];

/// The contents of the guest's files, and of the user's files that must not
/// change.
const GUEST_KEYS: &str = "keys of the guest\n";
const USER_KEYS: &str = "keys of the user\n";

impl Coming {
    /// Its name in the tree of [`Pairs::grow`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::EmptyDirectory => "empty",
            Self::Symlink => "symlink",
            Self::DanglingSymlink => "dangling",
            Self::HardLink => "hard",
        }
    }

    fn is_symlink(self) -> bool {
        matches!(self, Self::Symlink | Self::DanglingSymlink)
    }

    fn is_directory(self) -> bool {
        matches!(self, Self::Directory | Self::EmptyDirectory)
    }
}

/// A folder with files that must not change, and a destination for each pair.
pub(crate) struct Pairs {
    folder: TempDir,
    before: BTreeMap<PathBuf, String>,
    way: Way,
}

/// One pair, with its destination prepared.
pub(crate) struct Pair {
    pub(crate) there: There,
    pub(crate) coming: Coming,
    pub(crate) destination: PathBuf,
    before: BTreeMap<PathBuf, String>,
    /// The folder in which changes are allowed.
    home: PathBuf,
}

impl Pairs {
    pub(crate) fn new(way: Way) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir_all(outside.join("sub")).unwrap();
        fs::write(outside.join("authorized_keys"), USER_KEYS).unwrap();
        fs::write(outside.join("sub/file"), USER_KEYS).unwrap();
        let before = description(&outside);
        Self {
            folder,
            before,
            way,
        }
    }

    /// Returns a path in the test's own folder, for images and the like.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn outside(&self) -> PathBuf {
        self.path("outside")
    }

    /// Creates every kind of entry that can be written, for a guest or a disk.
    pub(crate) fn grow(&self) -> PathBuf {
        let top = self.path("grown");
        let directory = top.join("directory");
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::create_dir(top.join("empty")).unwrap();
        for path in ["file", "hard-too", "directory/authorized_keys"] {
            fs::write(top.join(path), GUEST_KEYS).unwrap();
        }
        fs::write(directory.join("sub/file"), GUEST_KEYS).unwrap();
        fs::hard_link(top.join("hard-too"), top.join("hard")).unwrap();
        fs::hard_link(directory.join("sub/file"), directory.join("twin")).unwrap();
        symlink(self.outside(), directory.join("link")).unwrap();
        symlink(self.outside(), top.join("symlink")).unwrap();
        symlink("nowhere/at/all", top.join("dangling")).unwrap();
        top
    }

    /// Prepares all pairs, each with a destination of its own.
    pub(crate) fn all(&self) -> Vec<Pair> {
        let of_one = |there| COMING.map(|coming| self.set_up(there, coming));
        THERE.into_iter().flat_map(of_one).collect()
    }

    fn set_up(&self, there: There, coming: Coming) -> Pair {
        let home = self.path(&format!("{there:?}-{coming:?}"));
        fs::create_dir(&home).unwrap();
        // The name of an archive determines its format.
        let ending = match self.way {
            Way::Archive => ".tar",
            _ => "",
        };
        let (place, outside) = (home.join(format!("place{ending}")), self.outside());
        let new = format!("new{ending}");
        match there {
            There::Nothing => {}
            There::File | There::BelowFile => fs::write(&place, "the user's\n").unwrap(),
            There::EmptyDirectory => fs::create_dir(&place).unwrap(),
            There::FullDirectory => {
                fs::create_dir(&place).unwrap();
                fs::write(place.join("kept"), "the user's\n").unwrap();
                symlink(
                    outside.join("authorized_keys"),
                    place.join("authorized_keys"),
                )
                .unwrap();
                let names = COMING.map(Coming::name).into_iter();
                for name in names.chain(["sub", "twin"]) {
                    symlink(&outside, place.join(name)).unwrap();
                }
            }
            There::SymlinkToDirectory | There::BelowSymlink | There::FarBelowSymlink => {
                symlink(&outside, &place).unwrap();
            }
            There::SymlinkToFile => symlink(outside.join("authorized_keys"), &place).unwrap(),
            There::DanglingSymlink => symlink(outside.join("new"), &place).unwrap(),
            There::Fifo => {
                let mode = Mode::from_raw_mode(0o600);
                mknodat(CWD, &place, FileType::Fifo, mode, 0).unwrap();
            }
            There::Socket => drop(UnixListener::bind(&place).unwrap()),
        }
        let destination = match there {
            There::BelowSymlink | There::BelowFile => place.join(new),
            There::FarBelowSymlink => place.join("sub").join(new),
            _ => place,
        };
        Pair {
            there,
            coming,
            destination,
            before: description(&home),
            home,
        }
    }

    /// Returns the expected result of a pair.
    pub(crate) fn expected(&self, pair: &Pair) -> Expected {
        let (there, coming) = (pair.there, pair.coming);
        let is_file = self.way == Way::Archive || !(coming.is_directory() || coming.is_symlink());
        let is_symlink = coming.is_symlink() && self.way != Way::Archive;
        if is_symlink && self.way != Way::AllowSymlink {
            return Expected::Refused(IS_SYMLINK);
        }
        match (there, self.way) {
            (There::BelowSymlink | There::FarBelowSymlink, _) => Expected::Refused(THROUGH_SYMLINK),
            (There::BelowFile, _) => Expected::Refused(NOT_A_DIRECTORY),
            (There::EmptyDirectory, Way::LikeCp) => Expected::Made,
            // A symlink has that name in it.
            (There::FullDirectory, Way::LikeCp) => Expected::Refused(THROUGH_SYMLINK),
            (There::Nothing, _) => Expected::Made,
            (There::EmptyDirectory | There::FullDirectory, _) => match coming.is_directory() {
                true if self.way != Way::Archive => Expected::Added,
                _ => Expected::Refused(IN_THE_WAY),
            },
            (There::SymlinkToDirectory | There::SymlinkToFile | There::DanglingSymlink, _) => {
                // Only a symlink may replace a symlink.
                match is_symlink {
                    true => Expected::Made,
                    false => Expected::Refused(THROUGH_SYMLINK),
                }
            }
            (There::File | There::Fifo | There::Socket, _) => match is_file || is_symlink {
                true => Expected::Made,
                false => Expected::Refused(NOT_A_DIRECTORY),
            },
        }
    }

    /// Checks the result of a pair, and that nothing else has changed.
    #[track_caller]
    pub(crate) fn check(&self, pair: &Pair, result: Result<(), String>) {
        let expected = self.expected(pair);
        let what = format!(
            "{:?}: {:?} comes where {:?} is: {expected:?}, {result:?}",
            self.way, pair.coming, pair.there
        );
        assert_eq!(description(&self.outside()), self.before, "{what}");
        let place = match (pair.there, self.way) {
            (There::EmptyDirectory | There::FullDirectory, Way::LikeCp) => {
                pair.destination.join(pair.coming.name())
            }
            _ => pair.destination.clone(),
        };
        match (expected, result) {
            (Expected::Refused(words), Err(error)) => {
                assert!(error.contains(words), "{what}");
                assert_eq!(description(&pair.home), pair.before, "{what}");
            }
            (Expected::Made, Ok(())) => self.check_made(pair.coming, &place, &what),
            (Expected::Added, Ok(())) => {
                let is_full = pair.there == There::FullDirectory;
                assert_eq!(place.join("kept").exists(), is_full, "{what}");
                if pair.coming == Coming::Directory {
                    check_contents(&place, &what);
                }
            }
            _ => panic!("{what}"),
        }
    }

    fn check_made(&self, coming: Coming, place: &Path, what: &str) {
        let found = fs::symlink_metadata(place).unwrap_or_else(|error| panic!("{what}: {error}"));
        if self.way == Way::Archive {
            assert!(found.is_file() && found.len() > 0, "{what}");
            return;
        }
        match coming {
            Coming::File | Coming::HardLink => {
                assert!(found.is_file() && found.nlink() == 1, "{what}");
                assert_eq!(fs::read_to_string(place).unwrap(), GUEST_KEYS, "{what}");
            }
            Coming::Directory => check_contents(place, what),
            Coming::EmptyDirectory => {
                assert!(found.is_dir(), "{what}");
                assert_eq!(fs::read_dir(place).unwrap().count(), 0, "{what}");
            }
            Coming::Symlink => assert_eq!(fs::read_link(place).unwrap(), self.outside(), "{what}"),
            Coming::DanglingSymlink => {
                let target = fs::read_link(place).unwrap();
                assert_eq!(target, Path::new("nowhere/at/all"), "{what}");
            }
        }
    }
}

/// Checks the contents of the directory that was written, and that no symlink
/// stands in for an entry that is not one.
#[track_caller]
fn check_contents(place: &Path, what: &str) {
    let found = |name: &str| {
        let found = fs::symlink_metadata(place.join(name));
        found.unwrap_or_else(|error| panic!("{what}: {name}: {error}"))
    };
    assert!(found("").is_dir() && found("sub").is_dir(), "{what}");
    assert!(found("authorized_keys").is_file(), "{what}");
    let keys = fs::read_to_string(place.join("authorized_keys")).unwrap();
    assert_eq!(keys, GUEST_KEYS, "{what}");
    assert_eq!(found("sub/file").ino(), found("twin").ino(), "{what}");
    assert!(found("link").is_symlink(), "{what}");
}

/// Describes everything below a folder, so that any change shows.
fn description(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut described = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(path) = pending.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let kind = found.file_type();
        let content = if kind.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
            "directory".to_owned()
        } else if kind.is_symlink() {
            format!("-> {:?}", fs::read_link(&path).unwrap())
        } else if kind.is_fifo() || kind.is_socket() {
            format!("{kind:?}")
        } else {
            format!("{:?}", fs::read(&path).unwrap())
        };
        let times = (found.mtime(), found.mtime_nsec());
        let status = (found.ino(), found.mode(), found.nlink(), times);
        described.insert(path, format!("{status:?} {content}"));
    }
    described
}
