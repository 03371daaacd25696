use std::{
    env, fs,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat},
    io::Errno,
    process::geteuid,
};

use super::{MAX_SOCKET_ADDRESS, MAX_SOCKET_NAME};
use crate::error::Error;

/// The longest id of a VM.
const MAX_ID: usize = 48;

/// The parent of all run folders, private to this user and locked until this is
/// dropped.
#[derive(Debug)]
pub(super) struct Base {
    descriptor: OwnedFd,
    pub(super) path: PathBuf,
}

impl Base {
    /// Opens the folder, creates it if needed, and waits until no other process
    /// creates or sweeps folders in it.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => {
                return Err(bad_folder(path, &format!("cannot be made: {errno}")));
            }
        }
        Self::open_existing(path)
    }

    /// Same as [`open`](Self::open), for a folder that exists.
    pub(super) fn open_existing(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(CWD, path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP => bad_folder(path, "is not a folder: remove it"),
            _ => bad_folder(path, &format!("cannot be opened: {errno}")),
        })?;
        let status = fstat(&descriptor).map_err(|errno| bad_folder(path, &errno.to_string()))?;
        if status.st_uid != geteuid().as_raw() {
            return Err(bad_folder(
                path,
                "belongs to another user: set XDG_RUNTIME_DIR to a folder of your own",
            ));
        }
        if status.st_mode & 0o077 != 0 {
            return Err(bad_folder(path, "is open to other users: `chmod 700` it"));
        }
        flock(&descriptor, FlockOperation::LockExclusive)
            .map_err(|errno| bad_folder(path, &format!("cannot be locked: {errno}")))?;
        Ok(Self {
            descriptor,
            path: path.to_owned(),
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn bad_folder(path: &Path, reason: &str) -> Error {
    Error::BadFile {
        what: "run folder",
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Returns the default base.
pub(super) fn default_base() -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = geteuid().as_raw();
    choose(runtime, &env::temp_dir(), user, is_ours)
}

fn choose(
    runtime: Option<PathBuf>,
    temporary: &Path,
    user: u32,
    is_ours: impl Fn(&Path) -> bool,
) -> PathBuf {
    let runtime = runtime
        .filter(|folder| folder.is_absolute() && is_ours(folder))
        .map(|folder| folder.join("vmcell"));
    let private = format!("vmcell-{user}");
    let temporary = temporary.join(&private);
    let mut candidates = runtime.into_iter().chain([temporary]);
    candidates
        .find(|folder| is_short(folder))
        .unwrap_or_else(|| Path::new("/tmp").join(private))
}

fn is_ours(folder: &Path) -> bool {
    fs::metadata(folder)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == geteuid().as_raw())
}

/// Returns whether the addresses of sockets in run folders below this base fit.
fn is_short(base: &Path) -> bool {
    base.as_os_str().as_bytes().len() + 1 + MAX_ID + 1 + MAX_SOCKET_NAME <= MAX_SOCKET_ADDRESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_short_and_ours() {
        let temporary = Path::new("/temporary");
        let chosen = |runtime: Option<&str>, is_ours: bool| {
            choose(runtime.map(PathBuf::from), temporary, 7, |_| is_ours)
        };
        let (runtime, fallback) = ("/run/user/7/vmcell", "/temporary/vmcell-7");
        assert_eq!(chosen(Some("/run/user/7"), true), Path::new(runtime));
        assert_eq!(chosen(Some("/run/user/7"), false), Path::new(fallback));
        assert_eq!(chosen(Some("run/user/7"), true), Path::new(fallback));
        assert_eq!(chosen(None, true), Path::new(fallback));
        let long = format!("/{}", "x".repeat(30));
        assert_eq!(chosen(Some(&long), true), Path::new(fallback));
        let nothing_fits = choose(None, Path::new(&long), 7, |_| true);
        assert_eq!(nothing_fits, Path::new("/tmp/vmcell-7"));
    }
}
