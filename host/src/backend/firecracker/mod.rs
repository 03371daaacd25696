//! Firecracker, from a config file.
//!
//! ```text
//!  this program ── firecracker --no-api --config-file /proc/self/fd/5
//!                    3 disk   4 initramfs   5 config   stdout: console
//!                    vsock: Unix sockets in a folder of the VM
//! ```
//!
//! Its API is off: there is nothing to be asked of it that the config file does
//! not say, and a guest that powers itself off ends it.

mod config;
mod jail;
mod weaknesses;

use std::{
    ffi::OsString,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
};

use self::config::{Places, config, instance_id};
pub use self::jail::Jail;
use super::{
    Backend, BackendHealth, Launched, Machine, Vmm, Wiring,
    kvm::{demand_kvm, has_kvm},
    machine::file_in_memory,
    raw_disk::raw_disk,
};
use crate::{error::Error, link::LinkKind, locate, run_folder::RunFolder};

pub(crate) use self::weaknesses::weakness;

/// The Firecracker backend. It needs KVM.
#[derive(Clone, Debug, Default)]
pub struct Firecracker {
    program: Option<PathBuf>,
    jail: Option<Jail>,
}

/// What its socket is called: short, because the addresses of sockets are.
const VSOCK: &str = "v";

// The descriptors that it inherits, in the order in which they are passed.
const DISK: &str = "/proc/self/fd/3";
const INITRAMFS: &str = "/proc/self/fd/4";
const CONFIG: &str = "/proc/self/fd/5";

impl Firecracker {
    /// The Firecracker that `VMCELL_FIRECRACKER` names, or the one in `PATH`.
    pub fn new() -> Self {
        Self::default()
    }

    /// This Firecracker.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
            jail: None,
        }
    }

    /// Runs it in a jail, by its own program `jailer`.
    #[must_use]
    pub fn jailed(mut self, jail: Jail) -> Self {
        self.jail = Some(jail);
        self
    }

    fn program(&self) -> Result<PathBuf, Error> {
        locate::firecracker(self.program.as_deref())
    }

    /// Why it cannot be used; what was found if it can.
    fn examine(&self) -> Result<String, String> {
        let program = self.program().map_err(|error| error.to_string())?;
        has_kvm()?;
        if let Some(weakness) = weakness(&program) {
            return Err(weakness);
        }
        if let Some(jail) = &self.jail {
            jail.examine().map_err(|error| error.to_string())?;
        }
        Ok(format!("{}, /dev/kvm works", program.display()))
    }

    fn launch_free(&self, machine: &Machine) -> Result<Launched, Error> {
        let folder = RunFolder::create(&RunFolder::base(), machine.id())?;
        let wiring = Wiring::hybrid(folder.path().join(VSOCK))?;
        let disk = raw_disk(machine, "firecracker")?;
        let initramfs = machine.initramfs("/dev/vda", wiring.boot_link())?;
        let places = Places {
            kernel: text(&machine.kernel()?)?,
            initramfs: INITRAMFS.to_owned(),
            disk: DISK.to_owned(),
            vsock: text(&folder.path().join(VSOCK))?,
        };
        let config = file_in_memory("vmcell-config", config(machine, &places).as_bytes())
            .map_err(Error::host("make Firecracker's config file"))?;
        let mut command = Command::new(self.program()?);
        command.args(arguments(machine, CONFIG));
        let descriptors = vec![disk.into(), initramfs.into(), config.into()];
        let launched = spawn(command, descriptors, wiring)?;
        Ok(launched.keep(folder))
    }
}

impl Backend for Firecracker {
    fn name(&self) -> &str {
        "firecracker"
    }

    fn health(&self) -> BackendHealth {
        match self.examine() {
            Ok(found) => BackendHealth::available(found),
            Err(reason) => BackendHealth::unavailable(reason),
        }
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        demand_kvm(&machine, self.name())?;
        let link = machine.only_link(LinkKind::HybridVsock, self.name())?;
        let launched = match &self.jail {
            None => self.launch_free(&machine),
            Some(jail) => jail.launch(&self.program()?, &machine),
        };
        Ok(launched?.link(link))
    }
}

/// What Firecracker is told besides its config file.
fn arguments(machine: &Machine, config: &str) -> Vec<OsString> {
    let id = instance_id(machine.id());
    let words = ["--id", &id, "--no-api", "--config-file", config];
    // Its log goes where the guest's console goes, and is to say what is wrong.
    let words = words.into_iter().chain(["--level", "Warning"]);
    words.map(OsString::from).collect()
}

/// Starts it, with its console and complaints where they are read.
fn spawn(
    mut command: Command,
    descriptors: Vec<OwnedFd>,
    wiring: Wiring,
) -> Result<Launched, Error> {
    let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
    let (console, console_of_vmm) = pair()?;
    let (complaints, complaints_of_vmm) = pair()?;
    command
        .env_clear()
        .current_dir("/")
        // A Ctrl-C at the terminal is for the program, not for its VMs.
        .process_group(0)
        .stdout(OwnedFd::from(console_of_vmm))
        .stderr(OwnedFd::from(complaints_of_vmm));
    let vmm = Vmm::spawn(command, descriptors)?;
    let launched = Launched::new(vmm, wiring);
    Ok(launched.console(console).console(complaints))
}

/// A path as JSON can say it.
fn text(path: &Path) -> Result<String, Error> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::BadFile {
            what: "path",
            path: path.to_owned(),
            reason: "is not UTF-8, which Firecracker's config file has to be".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceleration::Acceleration;

    #[test]
    fn the_whole_command_line() {
        let machine = Machine::sample(Acceleration::Kvm);
        let words = arguments(&machine, CONFIG);
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            words.join(" "),
            "--id vmcell-0123 --no-api --config-file /proc/self/fd/5 --level Warning"
        );
    }
}
