//! Boots without a VM: the agent as PID 1 of new namespaces on the host's kernel.
//! This is not a security boundary.
//!
//! ```text
//!  host ── starts ──> monitor ── clones ─> PID 1 of the namespaces
//!   │                   │ the ids, the files  │ mounts, host name, loopback
//!   │                   └────────────────────>│ the agent
//!   ├── SIGTERM ──────> │ ── SIGKILL ────────>│ and all its children
//!   │                   │<───── its end ──────┘
//!   │<──── its end ─────┘
//! ```
//!
//! The monitor stays outside the namespaces, because only a process there can map
//! more than one user. It has no access to the link. `PR_SET_PDEATHSIG` ties host,
//! monitor and PID 1: when one of them dies, those below it die too.

mod cgroup;
mod handshake;
mod ids;
mod monitor;
mod mounts;

use alloc::vec::Vec;

use rustix::{
    fd::OwnedFd,
    fs::OFlags,
    io::Errno,
    process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal},
    thread::set_no_new_privs,
};
use vmcell_wire::namespaces::{CGROUP_FD, CONFIG_FD, LINK_FD, Namespaces, PROGRAM_FD};

use self::handshake::Handshake;
use super::{BootError, Booted, Cause, RootDisk, stages};
use crate::{console::Console, sys};

/// Starts PID 1 of new namespaces, and returns there. The calling process becomes
/// its monitor, and returns only if PID 1 could not be started.
///
/// # Errors
/// The kernel does not allow it, or this program was not started by the host
/// library.
pub fn boot() -> Result<Booted, BootError> {
    let stage = |stage: &'static str| move |cause| BootError { stage, cause };
    let kernel = |name: &'static str| move |errno| stage(name)(Cause::Kernel(errno));
    let here = "read the description of the namespaces";

    let file = read_description().map_err(kernel(here))?;
    let plan = Namespaces::decode(&file).map_err(|error| stage(here)(Cause::Description(error)))?;
    let link = sys::inherited(LINK_FD).map_err(kernel("take the link"))?;
    let cgroup = match plan.has_cgroup {
        true => Some(sys::inherited(CGROUP_FD).map_err(kernel("take the cgroup"))?),
        false => None,
    };
    sys::reset_and_block_signals().map_err(kernel("block signals"))?;
    // The setuid bit of a program gives no privileges in the namespaces.
    set_no_new_privs(true).map_err(kernel("set no_new_privs"))?;
    let (outside, inside) = Handshake::pair().map_err(kernel("make a socket pair"))?;
    let child = sys::clone_into_namespaces(cgroup.as_ref())
        .map_err(|errno| stage("make namespaces")(Cause::NoNamespaces(errno)))?;
    match child {
        Some(child) => {
            drop((inside, link, cgroup));
            Err(monitor::run(child, &outside, &plan))
        }
        None => {
            drop((outside, cgroup));
            boot_init(&inside, &plan, link)
        }
    }
}

/// Prepares PID 1 until the agent can serve.
fn boot_init(
    handshake: &Handshake,
    plan: &Namespaces<'_>,
    link: OwnedFd,
) -> Result<Booted, BootError> {
    let stage = |stage: &'static str| move |cause| BootError { stage, cause };
    let kernel = |name: &'static str| move |errno| stage(name)(Cause::Kernel(errno));

    let tree = handshake
        .receive()
        .map_err(kernel("wait for the monitor"))?;
    ids::become_root(plan.ids).map_err(kernel("become root"))?;
    die_with_monitor(handshake).map_err(kernel("set the parent-death signal"))?;
    // Detaches from the host's terminal.
    rustix::process::setsid().map_err(kernel("begin a session"))?;
    // Other processes in the namespaces must not read the secrets of the boot.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(kernel("protect the agent's memory"))?;
    let cgroups = match plan.has_cgroup {
        true => Some(cgroup::enter().map_err(kernel("enter the cgroup"))?),
        false => None,
    };
    let has_cgroups = cgroups.is_some();
    mounts::set_up_root(plan, tree, cgroups)?;
    stages::set_hostname(plan.hostname).map_err(kernel("set the host name"))?;
    stages::bring_up_loopback().map_err(kernel("bring up the loopback interface"))?;
    rustix::fs::fcntl_setfl(&link, OFlags::NONBLOCK).map_err(kernel("use the link"))?;
    Ok(Booted {
        boot_id: plan.boot_id,
        reset_key: plan.reset_key,
        ports: alloc::vec![link],
        listener: None,
        has_clock: false,
        has_network: false,
        has_cgroups,
        root_disk: RootDisk::None,
        // The random numbers, the clock and the boot id are those of the host.
        random: None,
        console: Console::standard_error(),
    })
}

fn read_description() -> Result<Vec<u8>, Errno> {
    // It has been executed, and is not needed any more.
    drop(sys::inherited(PROGRAM_FD)?);
    let file = sys::inherited(CONFIG_FD)?;
    // A path is at most 4096 bytes long, and the rest is small.
    let mut bytes = alloc::vec![0; 8192];
    let count = rustix::io::pread(&file, &mut bytes[..], 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Makes this process die with the monitor. It must follow every change of user,
/// which would undo it: prctl(2).
fn die_with_monitor(handshake: &Handshake) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The monitor may have died before that.
    handshake.is_connected().then_some(()).ok_or(Errno::PIPE)
}
