//! Test cases for exports: every combination of an existing entry at the
//! destination and an incoming entry.
//!
//! All code that writes data from a guest is tested with them: the receiver of
//! trees, `Files::pull`, `Disk::export`, `vmcell cp`, `vmcell run --pull` and
//! `vmcell-disk export`, also with archives where they are supported. No
//! combination may change anything outside of the destination.

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

/// The entry at the destination before the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Nothing,
    File,
    EmptyDirectory,
    /// With symbolic links to the outside, under every name that can arrive.
    FullDirectory,
    SymlinkToDirectory,
    SymlinkToFile,
    DanglingSymlink,
    Fifo,
    Socket,
    /// Nothing, but the parent directory is a symbolic link.
    BelowSymlink,
    /// Nothing, and a directory further above is a symbolic link.
    FarBelowSymlink,
    /// Nothing, but the parent directory is a file.
    BelowFile,
}

/// The entry that is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    File,
    /// With a file, a directory, symbolic links and a file with two hard links.
    Directory,
    EmptyDirectory,
    Symlink,
    DanglingSymlink,
    /// A file that has another hard link.
    HardLink,
}

/// How it is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The destination becomes the entry.
    Exact,
    /// The same, with symbolic links allowed.
    AllowSymlink,
    /// If the destination is a directory, the entry is created in it.
    LikeCp,
    /// The destination becomes an archive that contains the entry.
    Archive,
}

/// The expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The destination is the exported entry.
    Created,
    /// The entries were added to the existing directory.
    Merged,
    /// Nothing was changed, and the error contains these words.
    Rejected(&'static str),
}

pub(crate) const THROUGH_SYMLINK: &str = "cannot write through the symbolic link";
pub(crate) const IS_SYMLINK: &str = "what comes is a symbolic link";
const IN_THE_WAY: &str = "a directory is in the way";
const NOT_A_DIRECTORY: &str = "is not a directory";

const EXISTING: [Existing; 12] = [
    Existing::Nothing,
    Existing::File,
    Existing::EmptyDirectory,
    Existing::FullDirectory,
    Existing::SymlinkToDirectory,
    Existing::SymlinkToFile,
    Existing::DanglingSymlink,
    Existing::Fifo,
    Existing::Socket,
    Existing::BelowSymlink,
    Existing::FarBelowSymlink,
    Existing::BelowFile,
];

const INCOMING: [Incoming; 6] = [
    Incoming::File,
    Incoming::Directory,
    Incoming::EmptyDirectory,
    Incoming::Symlink,
    Incoming::DanglingSymlink,
    Incoming::HardLink,
];

/// The content of the guest's files, and of files outside of the destination.
const GUEST_KEYS: &str = "keys of the guest\n";
const USER_KEYS: &str = "keys of the user\n";

impl Incoming {
    /// Returns its name in the tree of [`Cases::create_sources`].
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

/// A folder with files that must not change, and a folder for each case.
pub(crate) struct Cases {
    folder: TempDir,
    before: BTreeMap<PathBuf, String>,
    method: Method,
}

/// One case, ready for the export.
pub(crate) struct Case {
    pub(crate) existing: Existing,
    pub(crate) incoming: Incoming,
    pub(crate) destination: PathBuf,
    before: BTreeMap<PathBuf, String>,
    /// The only folder that may change.
    folder: PathBuf,
}

impl Cases {
    pub(crate) fn new(method: Method) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir_all(outside.join("sub")).unwrap();
        fs::write(outside.join("authorized_keys"), USER_KEYS).unwrap();
        fs::write(outside.join("sub/file"), USER_KEYS).unwrap();
        let before = snapshot(&outside);
        Self {
            folder,
            before,
            method,
        }
    }

    /// Returns a path in the temporary folder, for images and other files of a
    /// test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn outside(&self) -> PathBuf {
        self.path("outside")
    }

    /// Creates all incoming entries, to be copied to a guest or a disk.
    pub(crate) fn create_sources(&self) -> PathBuf {
        let top = self.path("sources");
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

    /// Creates all cases, each with a folder of its own.
    pub(crate) fn all(&self) -> Vec<Case> {
        let of_one = |existing| INCOMING.map(|incoming| self.set_up(existing, incoming));
        EXISTING.into_iter().flat_map(of_one).collect()
    }

    fn set_up(&self, existing: Existing, incoming: Incoming) -> Case {
        let folder = self.path(&format!("{existing:?}-{incoming:?}"));
        fs::create_dir(&folder).unwrap();
        // The extension of an archive selects its format.
        let ending = match self.method {
            Method::Archive => ".tar",
            _ => "",
        };
        let (place, outside) = (folder.join(format!("place{ending}")), self.outside());
        let new = format!("new{ending}");
        match existing {
            Existing::Nothing => {}
            Existing::File | Existing::BelowFile => fs::write(&place, "the user's\n").unwrap(),
            Existing::EmptyDirectory => fs::create_dir(&place).unwrap(),
            Existing::FullDirectory => {
                fs::create_dir(&place).unwrap();
                fs::write(place.join("kept"), "the user's\n").unwrap();
                symlink(
                    outside.join("authorized_keys"),
                    place.join("authorized_keys"),
                )
                .unwrap();
                let names = INCOMING.map(Incoming::name).into_iter();
                for name in names.chain(["sub", "twin"]) {
                    symlink(&outside, place.join(name)).unwrap();
                }
            }
            Existing::SymlinkToDirectory | Existing::BelowSymlink | Existing::FarBelowSymlink => {
                symlink(&outside, &place).unwrap();
            }
            Existing::SymlinkToFile => symlink(outside.join("authorized_keys"), &place).unwrap(),
            Existing::DanglingSymlink => symlink(outside.join("new"), &place).unwrap(),
            Existing::Fifo => {
                let mode = Mode::from_raw_mode(0o600);
                mknodat(CWD, &place, FileType::Fifo, mode, 0).unwrap();
            }
            Existing::Socket => drop(UnixListener::bind(&place).unwrap()),
        }
        let destination = match existing {
            Existing::BelowSymlink | Existing::BelowFile => place.join(new),
            Existing::FarBelowSymlink => place.join("sub").join(new),
            _ => place,
        };
        Case {
            existing,
            incoming,
            destination,
            before: snapshot(&folder),
            folder,
        }
    }

    /// Returns the expected result of a case.
    pub(crate) fn expected(&self, case: &Case) -> Expected {
        let (existing, incoming) = (case.existing, case.incoming);
        let is_file =
            self.method == Method::Archive || !(incoming.is_directory() || incoming.is_symlink());
        let is_symlink = incoming.is_symlink() && self.method != Method::Archive;
        if is_symlink && self.method != Method::AllowSymlink {
            return Expected::Rejected(IS_SYMLINK);
        }
        match (existing, self.method) {
            (Existing::BelowSymlink | Existing::FarBelowSymlink, _) => {
                Expected::Rejected(THROUGH_SYMLINK)
            }
            (Existing::BelowFile, _) => Expected::Rejected(NOT_A_DIRECTORY),
            (Existing::EmptyDirectory, Method::LikeCp) => Expected::Created,
            // It contains a symbolic link with that name.
            (Existing::FullDirectory, Method::LikeCp) => Expected::Rejected(THROUGH_SYMLINK),
            (Existing::Nothing, _) => Expected::Created,
            (Existing::EmptyDirectory | Existing::FullDirectory, _) => {
                match incoming.is_directory() {
                    true if self.method != Method::Archive => Expected::Merged,
                    _ => Expected::Rejected(IN_THE_WAY),
                }
            }
            (
                Existing::SymlinkToDirectory | Existing::SymlinkToFile | Existing::DanglingSymlink,
                _,
            ) => {
                // Only a link may replace a link.
                match is_symlink {
                    true => Expected::Created,
                    false => Expected::Rejected(THROUGH_SYMLINK),
                }
            }
            (Existing::File | Existing::Fifo | Existing::Socket, _) => {
                match is_file || is_symlink {
                    true => Expected::Created,
                    false => Expected::Rejected(NOT_A_DIRECTORY),
                }
            }
        }
    }

    /// Checks the result of a case, and that nothing else has changed.
    #[track_caller]
    pub(crate) fn check(&self, case: &Case, result: Result<(), String>) {
        let expected = self.expected(case);
        let what = format!(
            "{:?}: {:?} comes where {:?} is: {expected:?}, {result:?}",
            self.method, case.incoming, case.existing
        );
        assert_eq!(snapshot(&self.outside()), self.before, "{what}");
        let place = match (case.existing, self.method) {
            (Existing::EmptyDirectory | Existing::FullDirectory, Method::LikeCp) => {
                case.destination.join(case.incoming.name())
            }
            _ => case.destination.clone(),
        };
        match (expected, result) {
            (Expected::Rejected(words), Err(error)) => {
                assert!(error.contains(words), "{what}");
                assert_eq!(snapshot(&case.folder), case.before, "{what}");
            }
            (Expected::Created, Ok(())) => self.check_created(case.incoming, &place, &what),
            (Expected::Merged, Ok(())) => {
                let is_full = case.existing == Existing::FullDirectory;
                assert_eq!(place.join("kept").exists(), is_full, "{what}");
                if case.incoming == Incoming::Directory {
                    check_contents(&place, &what);
                }
            }
            _ => panic!("{what}"),
        }
    }

    fn check_created(&self, incoming: Incoming, place: &Path, what: &str) {
        let found = fs::symlink_metadata(place).unwrap_or_else(|error| panic!("{what}: {error}"));
        if self.method == Method::Archive {
            assert!(found.is_file() && found.len() > 0, "{what}");
            return;
        }
        match incoming {
            Incoming::File | Incoming::HardLink => {
                assert!(found.is_file() && found.nlink() == 1, "{what}");
                assert_eq!(fs::read_to_string(place).unwrap(), GUEST_KEYS, "{what}");
            }
            Incoming::Directory => check_contents(place, what),
            Incoming::EmptyDirectory => {
                assert!(found.is_dir(), "{what}");
                assert_eq!(fs::read_dir(place).unwrap().count(), 0, "{what}");
            }
            Incoming::Symlink => {
                assert_eq!(fs::read_link(place).unwrap(), self.outside(), "{what}")
            }
            Incoming::DanglingSymlink => {
                let target = fs::read_link(place).unwrap();
                assert_eq!(target, Path::new("nowhere/at/all"), "{what}");
            }
        }
    }
}

/// Checks that the exported directory is complete, with no symbolic link
/// instead of another entry.
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

/// Returns everything below a folder that would show a change.
fn snapshot(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut found_entries = BTreeMap::new();
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
        found_entries.insert(path, format!("{status:?} {content}"));
    }
    found_entries
}
