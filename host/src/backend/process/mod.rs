//! The backend without a VM: the agent runs in namespaces of the host's kernel.
//!
//! ```text
//!  this program ── supervisor: the agent's binary (outside)
//!                    └── PID 1, the agent    user, pid, mount, UTS, IPC, network
//!                          └── children      and cgroup namespaces
//!
//!  /            overlayfs: memory above the files of an image or a directory
//!  /dev         null, zero, full, random, urandom, tty, terminals
//!  /proc /run   private        /sys   its cgroups only
//!  network      lo
//! ```
//!
//! Writes go to memory, up to the size of the VM's memory or its quota if that is less, and are
//! lost when it ends. Virtual processors, memory and the kernel are otherwise the host's.
//! Before Linux 6.6 a directory of the image that was removed cannot be created
//! again.
//!
//! Users: if this program runs as root, there are 65,536 users, which map to
//! unused ids of the host, and files keep their owners. Otherwise there is one:
//! root, which maps to this program's user on the host. It owns all files, and
//! no other user exists.

mod availability;
pub(crate) mod cgroup;
mod image_cache;
mod root;

use std::{
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, net::UnixStream, process::CommandExt as _},
    },
    process::{Command, Stdio},
};

use rustix::process::{Signal, getegid, geteuid};
use vmcell_wire::namespaces::{IdMapping, Namespaces, PROGRAM_FD};

use self::{cgroup::Cgroup, root::RootFiles};
use super::{AgentTransport, Backend, BackendHealth, Launched, Machine, Vmm};
use crate::{error::Error, link::LinkKind, memory_file::sealed_memory_file, quotas::Quotas};

/// The backend without a VM: see
/// [`VmBuilder::allow_host_compat`](crate::VmBuilder::allow_host_compat).
///
/// It boots from an [image](crate::VmBuilder::image), whose files it unpacks
/// into the user's cache once, or from a
/// [directory](crate::VmBuilder::directory).
#[derive(Clone, Copy, Debug, Default)]
pub struct HostProcess {}

/// The warning that comes with every result.
const WARNING: &str = "this is not a VM and no security boundary: everything runs on the host's own \
                       kernel, in namespaces";

/// The first user id of the namespaces on the host. It is above the ids of
/// people, services and container managers.
const FIRST_ID: u32 = 0x7663_0000;

/// How many user ids are mapped.
const ID_COUNT: u32 = 65_536;

impl HostProcess {
    /// Creates the backend.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Backend for HostProcess {
    fn name(&self) -> &str {
        "process"
    }

    fn health(&self) -> BackendHealth {
        availability::health()
    }

    fn is_vm(&self) -> bool {
        false
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        let link = machine.only_link(LinkKind::Socket, self.name())?;
        let files = RootFiles::prepare(machine.root())?;
        let ids = ids();
        let quotas = machine.quotas();
        check_quotas(&quotas)?;
        let cgroup = Cgroup::make(machine.id(), ids, quotas.cpu_milli)?;
        let description = Namespaces {
            boot_id: machine.boot_id,
            reset_key: machine.reset_key,
            hostname: &machine.hostname,
            directory: files.directory.as_os_str().as_bytes(),
            writable_mib: writable_mib(&machine),
            ids,
            has_cgroup: cgroup.is_some(),
        };
        let description = description
            .encode()
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (socket, agent_socket) = pair()?;
        let (stderr, agent_stderr) = pair()?;
        let memfd = |name, bytes: &[u8]| {
            sealed_memory_file(name, bytes).map_err(Error::host("make a file in memory"))
        };
        // In the order in which `vmcell_wire::namespaces` numbers them.
        let mut descriptors: Vec<OwnedFd> = vec![
            memfd("vmcell-agent", machine.agent())?.into(),
            memfd("vmcell-namespaces", &description)?.into(),
            agent_socket.into(),
        ];
        let mut cgroup_folder = None;
        if let Some(cgroup) = cgroup {
            descriptors.push(cgroup.directory.into());
            cgroup_folder = Some(cgroup.folder);
        }
        let mut command = Command::new(format!("/proc/self/fd/{PROGRAM_FD}"));
        command
            .arg0(format!("vmcell-{}", machine.id()))
            .env_clear()
            .current_dir("/")
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(agent_stderr));
        // The monitor exits when all processes in the namespaces have, and
        // not before.
        let vmm = Vmm::spawn(command, descriptors)?.with_kill_signal(Signal::TERM);
        let launched = Launched::new(vmm, AgentTransport::Serial(socket))
            .link(link)
            .console(stderr)
            .keep(files)
            .keep(cgroup_folder)
            .enforces(quotas)
            .warning(WARNING);
        Ok(launched)
    }
}

/// Returns how much may be written to the root, and to each of the other file systems in memory.
fn writable_mib(machine: &Machine) -> u32 {
    let memory_mib = machine.memory_mib();
    match machine.quotas().layer_bytes {
        None => memory_mib,
        Some(bytes) => memory_mib.min(u32::try_from(bytes >> 20).unwrap_or(memory_mib)),
    }
}

/// Fails if a quota is set that cannot be enforced without a VM.
fn check_quotas(quotas: &Quotas) -> Result<(), Error> {
    let quota = match (quotas.cpu_seconds, quotas.disk_rate) {
        (None, None) => return Ok(()),
        (Some(_), _) => Quotas::CPU_TIME,
        (None, Some(_)) => Quotas::DISK_RATE,
    };
    Err(Error::Quota {
        quota,
        reason: "the backend process has no VMM and no disk: choose a backend that is a VM"
            .to_owned(),
    })
}

/// Returns the mapping of user ids. Root of the host is never mapped: it could
/// change the host's settings in `/proc/sys` without any capability.
fn ids() -> IdMapping {
    let (uid, gid) = (geteuid(), getegid());
    if uid.is_root() {
        return IdMapping::Range {
            first: FIRST_ID,
            count: ID_COUNT,
        };
    }
    IdMapping::Single {
        uid: uid.as_raw(),
        gid: gid.as_raw(),
    }
}
