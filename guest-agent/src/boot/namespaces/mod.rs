//! A life without a VM: the agent as PID 1 of namespaces of its own, on the
//! host's kernel. It is no security boundary.
//!
//! ```text
//!  host ── starts ──> keeper ── clones ──> PID 1 of the namespaces
//!   │                   │ the ids, the files  │ mounts, host name, loopback
//!   │                   └────────────────────>│ the agent
//!   ├── SIGTERM ──────> │ ── SIGKILL ────────>│ and all its children
//!   │                   │<───── its end ──────┘
//!   │<──── its end ─────┘
//! ```
//!
//! The keeper stays outside, because who other users are in the namespaces can
//! only be told from there. It hears nothing of what is said on the link. Host,
//! keeper and PID 1 are tied by `PR_SET_PDEATHSIG`: whoever dies, all that is
//! below dies.

mod cgroup;
mod ids;
mod keeper;
mod line;
mod mounts;

use alloc::vec::Vec;

use rustix::{
    fd::OwnedFd,
    fs::OFlags,
    io::Errno,
    process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal},
    thread::set_no_new_privs,
};
use vmcell_wire::namespaces::{CGROUP, DESCRIPTION, LINK, Namespaces, PROGRAM};

use self::line::Line;
use super::{BootError, Booted, Cause, RootDisk, stages};
use crate::{console::Console, sys};

/// Starts PID 1 of new namespaces, and returns there. The process that called
/// this becomes its keeper, and returns only if that did not come to be.
///
/// # Errors
/// The kernel does not allow it, or this program was not started by the host
/// library.
pub fn boot() -> Result<Booted, BootError> {
    let stage = |stage: &'static str| move |cause| BootError { stage, cause };
    let kernel = |name: &'static str| move |errno| stage(name)(Cause::Kernel(errno));
    let here = "read what the host asks for";

    let file = read_description().map_err(kernel(here))?;
    let plan = Namespaces::decode(&file).map_err(|error| stage(here)(Cause::Description(error)))?;
    let link = sys::inherited(LINK).map_err(kernel("take the link"))?;
    let cgroup = match plan.has_cgroup {
        true => Some(sys::inherited(CGROUP).map_err(kernel("take the cgroup"))?),
        false => None,
    };
    sys::reset_and_block_signals().map_err(kernel("block signals"))?;
    // Nobody in there becomes more than they are by a program's setuid bit.
    set_no_new_privs(true).map_err(kernel("give up new privileges"))?;
    let (outside, inside) = Line::pair().map_err(kernel("make a socket pair"))?;
    let child = sys::clone_into_namespaces(cgroup.as_ref())
        .map_err(|errno| stage("make namespaces")(Cause::NoNamespaces(errno)))?;
    match child {
        Some(child) => {
            drop((inside, link, cgroup));
            Err(keeper::keep(child, &outside, &plan))
        }
        None => {
            drop((outside, cgroup));
            live(&inside, &plan, link)
        }
    }
}

/// What PID 1 does until the agent can serve.
fn live(line: &Line, plan: &Namespaces<'_>, link: OwnedFd) -> Result<Booted, BootError> {
    let stage = |stage: &'static str| move |cause| BootError { stage, cause };
    let kernel = |name: &'static str| move |errno| stage(name)(Cause::Kernel(errno));

    let tree = line.wait().map_err(kernel("wait for the keeper"))?;
    ids::become_root(plan.ids).map_err(kernel("become root"))?;
    tie_to(line).map_err(kernel("tie ourselves to the keeper"))?;
    // No terminal of the host's is ours.
    rustix::process::setsid().map_err(kernel("begin a session"))?;
    // The secrets of the boot are not for the processes in here.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(kernel("hide our memory"))?;
    let cgroups = match plan.has_cgroup {
        true => Some(cgroup::enter().map_err(kernel("enter the cgroup"))?),
        false => None,
    };
    let has_cgroups = cgroups.is_some();
    mounts::move_in(plan, tree, cgroups)?;
    stages::set_hostname(plan.hostname).map_err(kernel("set the host name"))?;
    stages::raise_loopback().map_err(kernel("bring up the loopback interface"))?;
    rustix::fs::fcntl_setfl(&link, OFlags::NONBLOCK).map_err(kernel("use the link"))?;
    Ok(Booted {
        boot_id: plan.boot_id,
        reset_key: plan.reset_key,
        ports: alloc::vec![link],
        listener: None,
        has_clock: false,
        has_cgroups,
        root_disk: RootDisk::None,
        console: Console::standard_error(),
    })
}

fn read_description() -> Result<Vec<u8>, Errno> {
    // It has done its part, and would only stay open.
    drop(sys::inherited(PROGRAM)?);
    let file = sys::inherited(DESCRIPTION)?;
    // A path is at most 4096 bytes long, and the rest is small.
    let mut bytes = alloc::vec![0; 8192];
    let count = rustix::io::pread(&file, &mut bytes[..], 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Makes this process die with the keeper. It is after every change of user,
/// which would undo it: prctl(2).
fn tie_to(line: &Line) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The keeper may have died before that.
    line.is_held().then_some(()).ok_or(Errno::PIPE)
}
