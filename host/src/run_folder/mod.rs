//! Private folders for the sockets and files of VMs that need a path.
//!
//! ```text
//!  base, mode 0700, locked while folders are created and swept
//!  └── <id>, mode 0700
//!      ├── lock      held as long as the owner runs
//!      ├── cgroups   cgroups to remove with the folder, if any
//!      ├── vmm       a folder that the VMM may change, if it needs one
//!      └── …         whatever the backend keeps here
//! ```
//!
//! The kernel releases a lock when its owner dies, however that happens. So a
//! folder whose lock nobody holds was left by a dead program, and the next
//! program that creates a folder removes it. Folders are created and swept only
//! while the base is locked, so one without a lock file is incomplete.

mod base;
mod cgroup;
mod sweep;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat},
    io::Errno,
};

use self::{base::Base, cgroup::Cgroups};
use crate::error::Error;

pub(crate) use self::sweep::sweep;

/// A private folder of one VM. It is removed, with its contents, when this is
/// dropped. If the program dies before, the next one that creates such a folder
/// removes it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    cgroups: Cgroups,
    /// Held until the folder is removed.
    _lock: File,
}

/// The longest path in the address of a Unix socket: unix(7), without the
/// terminating zero.
const MAX_SOCKET_ADDRESS: usize = 107;

/// The longest path of a socket, relative to a run folder, that is guaranteed
/// to fit.
const MAX_SOCKET_NAME: usize = 32;

/// How long the processes in a cgroup may take to end before it is left to the
/// next sweep.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// The lock file, which shows whether the owner of a folder runs.
const LOCK: &str = "lock";

/// The folder of the VMM.
pub(crate) const VMM: &str = "vmm";

impl RunFolder {
    /// Returns where the folders of this user are: `$XDG_RUNTIME_DIR/vmcell`,
    /// or `vmcell-<uid>` in the system's temporary folder if that is not set,
    /// not this user's, or too long for socket addresses.
    pub fn base() -> PathBuf {
        base::default_base()
    }

    /// Creates the folder of the VM with this id, after removing those that
    /// dead programs have left in the same base. Creates the base if needed.
    ///
    /// It waits while another process does the same, which takes a moment.
    ///
    /// # Errors
    /// [`Error::IdTaken`] if there is one with this id and its owner runs,
    /// [`Error::BadFile`] if the base belongs to another user or is accessible
    /// to others, [`Error::Host`] if a system call fails.
    pub fn create(base: &Path, id: &str) -> Result<Self, Error> {
        let path = base.join(id);
        if path.file_name() != Some(id.as_ref()) {
            return Err(Error::Invalid(format!("{id:?} cannot name a folder")));
        }
        if path.as_os_str().as_bytes().len() + 1 + MAX_SOCKET_NAME > MAX_SOCKET_ADDRESS {
            return Err(Error::BadFile {
                what: "run folder",
                path,
                reason: "is too long for the address of a socket: choose a shorter id, or set \
                         XDG_RUNTIME_DIR to a folder with a short path"
                    .to_owned(),
            });
        }
        let base = Base::open(base)?;
        sweep::sweep_locked(&base);
        let failed = |errno: Errno| match errno {
            Errno::EXIST => Error::IdTaken { id: id.to_owned() },
            _ => Error::host("make a folder for the VM")(errno.into()),
        };
        mkdirat(base.descriptor(), id, Mode::RWXU).map_err(failed)?;
        let lock = lock_new(&base, id).inspect_err(|_| {
            let _ = fs::remove_dir_all(&path);
        });
        Ok(Self {
            cgroups: Cgroups::at(&path),
            path,
            _lock: lock.map_err(Error::host("lock the folder of the VM"))?,
        })
    }

    /// Returns its path. The name of a socket in it or in its
    /// [`vmm_folder`](Self::vmm_folder) may have up to 28 bytes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder in it that a VMM may change, and returns its path. The VMM must not
    /// change the run folder itself, whose files say what is removed with it.
    ///
    /// # Errors
    /// [`Error::Host`] if a system call fails.
    pub fn vmm_folder(&self) -> Result<PathBuf, Error> {
        let path = self.path.join(VMM);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::host("make a folder for the VMM"))?;
        Ok(path)
    }

    /// Records a cgroup of the VM, before the cgroup is created. When the
    /// folder is removed, the processes in the cgroup are killed and it is
    /// removed with all its descendants.
    ///
    /// # Errors
    /// [`Error::Host`] if the record cannot be written.
    pub fn remove_cgroup_on_drop(&self, cgroup: &Path) -> Result<(), Error> {
        self.cgroups
            .record(cgroup)
            .map_err(Error::host("record a cgroup of the VM"))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let has_no_cgroup = self.cgroups.remove(KILL_TIMEOUT);
        // Renamed first, so that a new folder can have the id while this one is
        // being removed. If this fails, the next sweep removes it.
        let renamed = sweep::removal_name(&self.path);
        let path = match fs::rename(&self.path, &renamed) {
            Ok(()) => &renamed,
            Err(_) => &self.path,
        };
        if has_no_cgroup {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Creates the lock file of a new folder and locks it.
fn lock_new(base: &Base, id: &str) -> io::Result<File> {
    let folder = openat(
        base.descriptor(),
        id,
        OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut lock = File::from(openat(&folder, LOCK, flags, Mode::RUSR | Mode::WUSR)?);
    let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(io::Error::from)
        .and_then(|()| write!(lock, "{}", describe_owner()));
    locked.inspect_err(|_| {
        let _ = unlinkat(&folder, LOCK, AtFlags::empty());
    })?;
    Ok(lock)
}

/// Describes this program, for people. Whether it runs is decided by the lock
/// alone.
fn describe_owner() -> String {
    let pid = std::process::id();
    let program = std::env::current_exe().unwrap_or_default();
    // The 22nd field of proc_pid_stat(5). The name of the program, which may
    // hold anything, ends with the last parenthesis.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().nth(19).unwrap_or("?");
    format!(
        "pid {pid}, started {ticks} ticks after boot, {}\n",
        program.display()
    )
}
