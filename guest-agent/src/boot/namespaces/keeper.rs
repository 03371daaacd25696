use alloc::format;

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags},
    io::Errno,
    mount::{OpenTreeFlags, open_tree},
    process::{Pid, Signal, kill_process},
};
use vmcell_wire::{
    Cause,
    namespaces::{Ids, Namespaces},
};

use super::{
    super::{BootError, Cause as BootCause},
    Line, ids,
};
use crate::sys;

/// Lets PID 1 begin, and ends with it. Returns only if it cannot begin.
pub(super) fn keep(child: Pid, line: &Line, plan: &Namespaces<'_>) -> BootError {
    if let Err(error) = let_begin(child, line, plan) {
        let _ = kill_process(child, Signal::KILL);
        return error;
    }
    match wait_for(child) {
        Ok(Cause::Code(code)) => sys::exit(code),
        Ok(_) => {}
        Err(_) => {
            let _ = kill_process(child, Signal::KILL);
        }
    }
    sys::exit_immediately()
}

fn let_begin(child: Pid, line: &Line, plan: &Namespaces<'_>) -> Result<(), BootError> {
    let failed = |stage: &'static str| {
        move |errno| BootError {
            stage,
            cause: BootCause::Kernel(errno),
        }
    };
    ids::map(child, plan.ids).map_err(failed("map users and groups"))?;
    let tree = match plan.ids {
        // PID 1 may see what its user may.
        Ids::Single { .. } => None,
        Ids::Range { .. } => Some(shifted(child, plan.directory)?),
    };
    line.say(tree.as_ref()).map_err(failed("let PID 1 begin"))
}

/// A mount of the directory in which the owners are those of the namespace:
/// mount_setattr(2), `MOUNT_ATTR_IDMAP`.
fn shifted(child: Pid, directory: &[u8]) -> Result<OwnedFd, BootError> {
    let failed = |errno| BootError {
        stage: "shift the owners of the files",
        cause: BootCause::NoShift(errno),
    };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, directory, flags).map_err(failed)?;
    let namespace = format!("/proc/{}/ns/user", child.as_raw_nonzero());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::open(namespace, flags, Mode::empty()).map_err(failed)?;
    sys::idmap_mount(&tree, &namespace).map_err(failed)?;
    Ok(tree)
}

/// Waits for the end of PID 1, and brings it about when somebody asks. All
/// others in the namespaces have ended before it. Returns how it ended.
fn wait_for(child: Pid) -> Result<Cause, Errno> {
    let signals = sys::SignalFd::new()?;
    loop {
        if let Some(reaped) = sys::reap()?.filter(|reaped| reaped.pid == child) {
            return Ok(reaped.cause);
        }
        let mut waiting = [PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        if signals.drain()? {
            // It fails only if it has ended.
            let _ = kill_process(child, Signal::KILL);
        }
    }
}
