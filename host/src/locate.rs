//! Locates the programs and files that a VM needs and the library does not
//! contain.

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

/// Names a vhost-device-vsock other than the installed one.
pub(crate) const VHOST_DEVICE_VSOCK_VARIABLE: &str = "VMCELL_VHOST_DEVICE_VSOCK";

/// Names a Firecracker other than the one in `PATH`.
const FIRECRACKER_VARIABLE: &str = "VMCELL_FIRECRACKER";
/// Names Firecracker's jailer, if it is not the one in `PATH`.
const JAILER_VARIABLE: &str = "VMCELL_JAILER";
/// Names a Cloud Hypervisor other than the one in `PATH`.
const CLOUD_HYPERVISOR_VARIABLE: &str = "VMCELL_CLOUD_HYPERVISOR";

const QEMU: &str = "qemu-system-x86_64";

/// Locates QEMU: the caller's, the environment's, or the one in `PATH`.
pub(crate) fn qemu(given: Option<&Path>) -> Result<PathBuf, Error> {
    let remedy = "`apt-get install qemu-system-x86`";
    program("QEMU", QEMU, QEMU_VARIABLE, remedy, given)
}

/// Locates Firecracker, as for QEMU.
pub(crate) fn firecracker(given: Option<&Path>) -> Result<PathBuf, Error> {
    let remedy = "install 1.14.4 or later from its releases";
    program(
        "Firecracker",
        "firecracker",
        FIRECRACKER_VARIABLE,
        remedy,
        given,
    )
}

/// Locates Firecracker's jailer, as for QEMU.
pub(crate) fn jailer(given: Option<&Path>) -> Result<PathBuf, Error> {
    let remedy = "it comes with Firecracker";
    program(
        "Firecracker's jailer",
        "jailer",
        JAILER_VARIABLE,
        remedy,
        given,
    )
}

/// Locates Cloud Hypervisor, as for QEMU.
pub(crate) fn cloud_hypervisor(given: Option<&Path>) -> Result<PathBuf, Error> {
    let (name, variable) = ("cloud-hypervisor", CLOUD_HYPERVISOR_VARIABLE);
    let remedy = "install it from its releases";
    program("Cloud Hypervisor", name, variable, remedy, given)
}

/// Locates a program: the caller's, the environment's, or the one in `PATH`.
fn program(
    what: &'static str,
    name: &str,
    variable: &str,
    remedy: &str,
    given: Option<&Path>,
) -> Result<PathBuf, Error> {
    let named = given
        .map(Path::to_owned)
        .or_else(|| env::var_os(variable).map(PathBuf::from));
    match named {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(Error::BadFile {
            what,
            path,
            reason: "there is no such program".to_owned(),
        }),
        None => in_path(name).ok_or_else(|| Error::Missing {
            what,
            remedy: format!("{remedy}, or set {variable}"),
        }),
    }
}

/// Locates the vhost-user vsock device for QEMU: the caller's, the
/// environment's, the one in `PATH`, or the one that the set-up has installed.
pub(crate) fn vhost_device_vsock(given: Option<&Path>) -> Result<PathBuf, Error> {
    const PROGRAM: &str = "vhost-device-vsock";
    let named = given
        .map(Path::to_owned)
        .or_else(|| env::var_os(VHOST_DEVICE_VSOCK_VARIABLE).map(PathBuf::from));
    match named {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(Error::BadFile {
            what: PROGRAM,
            path,
            reason: "there is no such program".to_owned(),
        }),
        None => in_path(PROGRAM)
            .or_else(|| Some(cache_folder()?.join("tools/bin").join(PROGRAM)))
            .filter(|path| path.is_file())
            .ok_or_else(|| Error::Missing {
                what: PROGRAM,
                remedy: format!(
                    "`make vsock` or `cargo install --locked {PROGRAM}` brings it, or set \
                     {VHOST_DEVICE_VSOCK_VARIABLE}"
                ),
            }),
    }
}

/// Locates the guest kernel: the caller's, the environment's, or the cached one.
pub(crate) fn kernel(given: Option<&Path>) -> Result<PathBuf, Error> {
    cached_kernel(given, "current", "kernel-config/build.sh")
}

/// As [`kernel`], for Cloud Hypervisor, which needs another one.
pub(crate) fn cloud_hypervisor_kernel(given: Option<&Path>) -> Result<PathBuf, Error> {
    let build = "kernel-config/build.sh cloud-hypervisor";
    cached_kernel(given, "current-cloud-hypervisor", build)
}

fn cached_kernel(given: Option<&Path>, link: &str, build: &str) -> Result<PathBuf, Error> {
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
            .map(|cache| cache.join("kernel").join(link).join("vmlinux"))
            .filter(|path| path.is_file())
            .ok_or_else(|| Error::Missing {
                what: "the guest kernel",
                remedy: format!("build it with `{build}`, or set {KERNEL_VARIABLE}"),
            }),
    }
}

/// Returns the user's cache folder for vmcell.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
        _ => PathBuf::from(env::var_os("HOME")?).join(".cache"),
    };
    Some(cache.join("vmcell"))
}

/// Returns the folder for what outlives programs: `$XDG_STATE_HOME/vmcell`, or
/// `~/.local/state/vmcell`.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let state = match env::var_os("XDG_STATE_HOME") {
        Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
        _ => PathBuf::from(env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("vmcell"))
}

/// Looks for a program in the path.
pub(crate) fn in_path(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
