//! Control over a running QEMU.

use std::{
    fs::{File, OpenOptions},
    io::{self, PipeReader, Write as _},
    os::{fd::AsFd as _, unix::fs::OpenOptionsExt as _},
    path::Path,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, retry_on_intr},
    pipe::{SpliceFlags, fcntl_setpipe_size, splice},
};
use serde_json::{Value, json};

use super::{
    disk::DiskFiles,
    qmp::{Qmp, REPLY_TIMEOUT},
};
use crate::{
    backend::{Feature, PartKind, SavedMachine, SavedPart, SavedVm, VmmControl, VmmRecord},
    error::Error,
    sparse,
};

/// Control over a QEMU, by its monitor.
#[derive(Debug)]
pub(super) struct QemuControl {
    pub(super) qmp: Qmp,
    pub(super) machine: MachineRecord,
    pub(super) disk: DiskFiles,
    /// The file that is its memory, if it is shared with this program.
    pub(super) memory: Option<File>,
    /// Whether its devices can be saved.
    pub(super) can_be_saved: bool,
}

/// What [`VmmRecord`] says about the machine.
#[derive(Clone, Debug)]
pub(super) struct MachineRecord {
    pub(super) machine: String,
    pub(super) processor: String,
    pub(super) tsc_khz: Option<u64>,
    pub(super) memory_mib: u32,
}

/// Without this, QEMU would save at most 128 MiB in a second.
const BANDWIDTH: u64 = 1 << 40;

/// How much the state may be larger than the memory.
const MAX_DEVICE_STATE: u64 = 256 << 20;

/// The buffer of the pipe through which QEMU writes its state.
const PIPE_SIZE: usize = 1 << 20;

impl VmmControl for QemuControl {
    fn pause(&mut self) -> Result<(), Error> {
        self.execute("stop", Value::Null, "pause the VM")
    }

    fn resume(&mut self) -> Result<(), Error> {
        self.execute("cont", Value::Null, "resume the VM")
    }

    fn save(&mut self, folder: &Path) -> Result<SavedVm, Error> {
        let mut saved = self.save_without_disk(folder)?;
        for (number, layer) in self.disk.layers.iter().enumerate() {
            let name = format!("layer-{number}");
            copy(layer, folder, &name)?;
            saved.parts.push(SavedPart::new(&name, PartKind::Layer));
        }
        let image = self.disk.image_path();
        saved.image = image.map_err(Error::host("save the VM"))?;
        Ok(saved)
    }

    fn save_without_disk(&mut self, folder: &Path) -> Result<SavedVm, Error> {
        const DOING: &str = "save the VM";
        if !self.can_be_saved {
            return Err(Error::BackendLacks {
                backend: "qemu".to_owned(),
                feature: Feature::Snapshot,
                remedy: "only VMs with the link serial can be saved",
            });
        }
        let version = self.qmp.version().map_err(failed(DOING))?;
        let mut parts = vec![SavedPart::new("state", PartKind::State)];
        let state = create(folder, "state")?;
        self.save_state(&state).map_err(failed(DOING))?;
        if let Some(memory) = &self.memory {
            copy(memory, folder, "memory")?;
            parts.push(SavedPart::new("memory", PartKind::Memory));
        }
        Ok(SavedVm {
            vmm: self.machine.with_version(version),
            parts,
            image: None,
            disk_size: self.disk.size,
        })
    }

    fn switch_disk(&mut self, path: &Path) -> Result<(), Error> {
        self.disk.switch(&mut self.qmp, path)
    }
}

impl QemuControl {
    fn execute(
        &mut self,
        command: &str,
        arguments: Value,
        doing: &'static str,
    ) -> Result<(), Error> {
        let executed = self.qmp.execute(command, arguments);
        executed.map(drop).map_err(failed(doing))
    }

    /// Saves the state of the VM, which is paused: memory that changes meanwhile would
    /// be saved wrongly.
    fn save_state(&mut self, to: &File) -> Result<(), String> {
        self.set_capabilities(self.memory.is_some())?;
        let bandwidth = json!({ "max-bandwidth": BANDWIDTH });
        self.qmp.execute("migrate-set-parameters", bandwidth)?;
        // A pipe, because its end is the only sign that QEMU can go on: it reports
        // completion before.
        let (reader, writer) = io::pipe().map_err(|error| error.to_string())?;
        // A smaller one only is slower.
        let _ = fcntl_setpipe_size(&reader, PIPE_SIZE);
        let name = json!({ "fdname": "state" });
        self.qmp
            .execute_with("getfd", name.clone(), writer.as_fd())?;
        drop(writer);
        self.qmp.expect_migration();
        let started = self.qmp.execute("migrate", json!({ "uri": "fd:state" }));
        if let Err(error) = started {
            // QEMU would keep the descriptor.
            let _ = self.qmp.execute("closefd", name);
            return Err(error);
        }
        let limit = (u64::from(self.machine.memory_mib) << 20) + MAX_DEVICE_STATE;
        let received = receive(&reader, to, limit);
        // QEMU gives up if it cannot write.
        drop(reader);
        let migrated = self.qmp.migrated();
        received.map_err(|error| error.to_string())?;
        migrated
    }

    /// Restores the state of a VM in a QEMU that waits for it, from a descriptor that it
    /// has inherited, and lets the VM run.
    pub(super) fn restore(&mut self, saved: &SavedMachine, descriptor: usize) -> Result<(), Error> {
        const DOING: &str = "restore the VM";
        let version = self.qmp.version().map_err(failed(DOING))?;
        saved.vmm.check(&self.machine.with_version(version))?;
        let has_memory = saved.has(PartKind::Memory);
        self.set_capabilities(has_memory).map_err(failed(DOING))?;
        self.qmp.expect_migration();
        let uri = json!({ "uri": format!("fd:{descriptor}") });
        self.execute("migrate-incoming", uri, DOING)?;
        self.qmp.migrated().map_err(failed(DOING))?;
        self.execute("cont", Value::Null, DOING)
    }

    /// Requests events of migrations, and leaves memory out of them that is shared with
    /// a file.
    fn set_capabilities(&mut self, leave_out_memory: bool) -> Result<(), String> {
        let capability = |name, state| json!({ "capability": name, "state": state });
        let capabilities = [
            capability("events", true),
            capability("x-ignore-shared", leave_out_memory),
        ];
        let capabilities = json!({ "capabilities": capabilities });
        self.qmp
            .execute("migrate-set-capabilities", capabilities)
            .map(drop)
    }
}

impl MachineRecord {
    fn with_version(&self, version: String) -> VmmRecord {
        VmmRecord {
            version,
            machine: self.machine.clone(),
            processor: self.processor.clone(),
            tsc_khz: self.tsc_khz,
        }
    }
}

/// Copies a file into the folder of a saved VM.
fn copy(from: &File, folder: &Path, name: &str) -> Result<(), Error> {
    let to = create(folder, name)?;
    sparse::copy_into(from, &to).map_err(Error::host("save the VM"))
}

fn failed(doing: &'static str) -> impl Fn(String) -> Error {
    move |reason| Error::Control { doing, reason }
}

fn create(folder: &Path, name: &str) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    options
        .open(folder.join(name))
        .map_err(Error::host("save the VM"))
}

/// Writes what arrives through a pipe into a file, until its end.
fn receive(pipe: &PipeReader, mut to: &File, limit: u64) -> io::Result<()> {
    let timeout = Timespec::try_from(REPLY_TIMEOUT).map_err(io::Error::other)?;
    let mut total = 0;
    loop {
        let mut waiting = [PollFd::new(pipe, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut waiting, Some(&timeout)))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let moved = splice(pipe, None, to, None, PIPE_SIZE, SpliceFlags::MOVE);
        match moved {
            Ok(0) => return to.flush(),
            Ok(count) => total += count as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if total > limit {
            return Err(io::Error::other("QEMU writes more than the VM can have"));
        }
    }
}
