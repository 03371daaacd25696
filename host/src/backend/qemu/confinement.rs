//! What QEMU needs of the host besides its descriptors.

use std::path::{Path, PathBuf};

use super::arguments::{Parts, START_FD};
use crate::{
    acceleration::Acceleration,
    backend::{Machine, VmmProgram},
};

/// Where distributions install QEMU's firmware.
const FIRMWARE: [&str; 4] = [
    "/usr/share/qemu",
    "/usr/share/qemu-kvm",
    "/usr/share/seabios",
    "/usr/local/share/qemu",
];

/// Returns QEMU, with all that it may use.
pub(super) fn vmm_program(program: PathBuf, machine: &Machine, parts: &Parts) -> VmmProgram {
    let mut vmm = VmmProgram::new(&program, machine).reopens(START_FD);
    for path in FIRMWARE.iter().map(PathBuf::from).chain(beside(&program)) {
        vmm = vmm.readable(path);
    }
    if let Some(kernel) = &parts.kernel {
        vmm = vmm.readable(kernel);
    }
    match machine.acceleration.acceleration {
        Acceleration::Kvm => vmm.device("/dev/kvm"),
        Acceleration::Tcg => vmm,
    }
}

/// Returns where a QEMU has its firmware that is installed elsewhere, or not installed.
fn beside(program: &Path) -> Vec<PathBuf> {
    let program = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let folder = program.parent().unwrap_or(Path::new("/"));
    let prefix = folder.parent().unwrap_or(Path::new("/"));
    [
        folder.join("pc-bios"),
        folder.join("qemu-bundle"),
        prefix.join("pc-bios"),
        prefix.join("share/qemu"),
        prefix.join("share/seabios"),
    ]
    .into()
}
