//! Saves VMs of VMMs that write the memory themselves when their API says so, and have a
//! raw disk.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    },
    path::Path,
    time::Duration,
};

use rustix::fs::OFlags;
use serde_json::Value;

use super::{
    Machine, PartKind, SavedMachine, SavedPart, SavedVm, VmmRecord,
    http_api::{Api, ApiRequest, REPLY_TIMEOUT},
    version::version_line,
};
use crate::{error::Error, processor, sparse};

/// What it takes to save a VM.
#[derive(Debug)]
pub(super) struct Savable {
    /// See [`VmmRecord::machine`].
    machine: String,
    memory_mib: u32,
    disk: File,
    disk_size: u64,
}

/// The most that a VMM may write about processors and devices, and beyond the memory.
pub(super) const MAX_DEVICE_STATE: u64 = 256 << 20;

/// How many MiB of memory the slowest file system takes in a second.
const SLOWEST_MIB_PER_SECOND: u32 = 32;

/// What a snapshot says about a VMM that sees the files of the host.
pub(super) const WITHOUT_JAIL: &str = "without a jail";

/// What blocking work is done for.
pub(super) const SAVING: &str = "save the VM";

/// Same, for a VM that is restored.
pub(super) const RESTORING: &str = "restore the VM";

impl Savable {
    /// Creates it for a VM with this disk. `setting` is what else must be the same when it
    /// is restored.
    pub(super) fn new(machine: &Machine, disk: &File, setting: &str) -> Result<Self, Error> {
        // A descriptor of its own, with a position that nobody else moves.
        let disk = File::open(format!("/proc/self/fd/{}", disk.as_raw_fd()));
        let disk = disk.and_then(|disk| Ok((disk.metadata()?.len(), disk)));
        let (disk_size, disk) = disk.map_err(Error::host("open the VM's disk"))?;
        Ok(Self {
            machine: machine_text(machine, disk_size, setting),
            memory_mib: machine.memory_mib(),
            disk,
            disk_size,
        })
    }

    /// Has the VMM write or read the memory.
    pub(super) fn put(
        &self,
        api: &Api,
        path: &'static str,
        body: &Value,
        doing: &'static str,
    ) -> Result<(), Error> {
        let request = ApiRequest {
            method: "PUT",
            path,
            body: &body.to_string(),
        };
        let seconds = self.memory_mib / SLOWEST_MIB_PER_SECOND;
        let timeout = REPLY_TIMEOUT + Duration::from_secs(seconds.into());
        api.request_within(timeout, request, doing).map(drop)
    }

    /// Opens a file that the VMM has written for a part of this kind, and checks it: the VMM
    /// may be under the control of its guest.
    pub(super) fn open_written(&self, path: &Path, kind: PartKind) -> Result<File, Error> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(Error::host(SAVING))?;
        self.check_written(&file, kind)?;
        Ok(file)
    }

    /// Checks that a file is one, and not larger than the VM can make it.
    pub(super) fn check_written(&self, file: &File, kind: PartKind) -> Result<(), Error> {
        let metadata = file.metadata().map_err(Error::host(SAVING))?;
        let memory = match kind {
            PartKind::Memory => u64::from(self.memory_mib) << 20,
            _ => 0,
        };
        let reason = if !metadata.is_file() {
            "it has written something that is not a file"
        } else if metadata.len() > memory + MAX_DEVICE_STATE {
            "it has written more than the VM can have"
        } else {
            return Ok(());
        };
        Err(Error::Control {
            doing: SAVING,
            reason: reason.to_owned(),
        })
    }

    /// Checks that the disk, or a copy of it, has its size.
    fn check_disk(&self, disk: &File) -> Result<(), Error> {
        let size = disk.metadata().map_err(Error::host(SAVING))?.len();
        match size == self.disk_size {
            true => Ok(()),
            false => Err(Error::Control {
                doing: SAVING,
                reason: format!("its disk had {} bytes and has {size} now", self.disk_size),
            }),
        }
    }

    /// Adds the disk to what a VMM of this version has written.
    pub(super) fn finish(
        &self,
        folder: &Path,
        version: &str,
        mut parts: Vec<SavedPart>,
    ) -> Result<SavedVm, Error> {
        let disk = SavedPart::new("disk", PartKind::Disk);
        let to = create(folder, &disk.name).map_err(Error::host(SAVING))?;
        self.check_disk(&self.disk)?;
        sparse::copy_into(&self.disk, &to).map_err(Error::host(SAVING))?;
        // It may have grown meanwhile.
        self.check_disk(&to)?;
        parts.push(disk);
        Ok(SavedVm {
            vmm: record(version, self.machine.clone()),
            parts,
            image: None,
            disk_size: self.disk_size,
        })
    }
}

/// Checks that a saved VM can be restored with this program, before it is started.
pub(super) fn check_fits(
    saved: &SavedMachine,
    machine: &Machine,
    program: &Path,
    setting: &str,
) -> Result<(), Error> {
    let version = version_line(program).unwrap_or_default();
    let machine = machine_text(machine, saved.disk_size, setting);
    saved.vmm().check(&record(version_in(&version), machine))?;
    Ok(())
}

/// Creates a file that only its owner can read.
pub(super) fn create(folder: &Path, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    options.open(folder.join(name))
}

/// Makes a file readable by its owner only.
pub(super) fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// Returns the version in what a program says about itself: `Firecracker v1.14.4`.
fn version_in(line: &str) -> &str {
    line.split_whitespace().nth(1).unwrap_or("unknown")
}

/// The API of one of the VMMs leaves out the `v` of its version.
fn record(version: &str, machine: String) -> VmmRecord {
    VmmRecord {
        version: version.strip_prefix('v').unwrap_or(version).to_owned(),
        machine,
        processor: processor::description(),
        tsc_khz: None,
    }
}

fn machine_text(machine: &Machine, disk_size: u64, setting: &str) -> String {
    format!(
        "{} processors, {} MiB of memory, a disk of {disk_size} bytes, {setting}",
        machine.vcpus(),
        machine.memory_mib(),
    )
}
