//! Where the things are that a VM needs and the library does not bring.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::error::Error;

/// Names a QEMU other than the one in `PATH`.
pub(crate) const QEMU_VARIABLE: &str = "VMCELL_QEMU";
/// Names a guest kernel other than the cached one.
pub(crate) const KERNEL_VARIABLE: &str = "VMCELL_KERNEL";

const QEMU: &str = "qemu-system-x86_64";

/// The QEMU to use: the caller's, the environment's, or the one in `PATH`.
pub(crate) fn qemu(given: Option<&Path>) -> Result<PathBuf, Error> {
    let missing = || Error::Missing {
        what: "QEMU",
        remedy: format!("`apt-get install qemu-system-x86`, or set {QEMU_VARIABLE}"),
    };
    let named = given
        .map(Path::to_owned)
        .or_else(|| env::var_os(QEMU_VARIABLE).map(PathBuf::from));
    match named {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(Error::BadFile {
            what: "QEMU",
            path,
            reason: "there is no such program".to_owned(),
        }),
        None => in_path(QEMU).ok_or_else(missing),
    }
}

/// The guest kernel: the caller's, the environment's, or the cached one.
pub(crate) fn kernel(given: Option<&Path>) -> Result<PathBuf, Error> {
    let named = given
        .map(Path::to_owned)
        .or_else(|| env::var_os(KERNEL_VARIABLE).map(PathBuf::from));
    match named {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(Error::BadFile {
            what: "kernel",
            path,
            reason: "there is no such file".to_owned(),
        }),
        None => cache_folder()
            .map(|cache| cache.join("kernel/current/vmlinux"))
            .filter(|path| path.is_file())
            .ok_or_else(|| Error::Missing {
                what: "the guest kernel",
                remedy: format!("build it with `kernel-config/build.sh`, or set {KERNEL_VARIABLE}"),
            }),
    }
}

/// The user's cache folder for vmcell.
fn cache_folder() -> Option<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
        _ => PathBuf::from(env::var_os("HOME")?).join(".cache"),
    };
    Some(cache.join("vmcell"))
}

fn in_path(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
