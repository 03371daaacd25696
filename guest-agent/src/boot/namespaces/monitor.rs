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
    ExitCause,
    namespaces::{IdMapping, Namespaces},
};

use super::{
    super::{BootError, Cause as BootCause},
    Handshake, ids,
};
use crate::sys;

/// Lets PID 1 start, and exits when it ends. Returns only if it cannot start.
pub(super) fn run(child: Pid, handshake: &Handshake, plan: &Namespaces<'_>) -> BootError {
    if let Err(error) = release_child(child, handshake, plan) {
        let _ = kill_process(child, Signal::KILL);
        return error;
    }
    match wait_for(child) {
        Ok(ExitCause::Code(code)) => sys::exit(code),
        Ok(_) => {}
        Err(_) => {
            let _ = kill_process(child, Signal::KILL);
        }
    }
    sys::exit_immediately()
}

fn release_child(
    child: Pid,
    handshake: &Handshake,
    plan: &Namespaces<'_>,
) -> Result<(), BootError> {
    let failed = |stage: &'static str| {
        move |errno| BootError {
            stage,
            cause: BootCause::Kernel(errno),
        }
    };
    ids::map(child, plan.ids).map_err(failed("map users and groups"))?;
    let tree = match plan.ids {
        // PID 1 is the same user, so it can open the directory itself.
        IdMapping::Single { .. } => None,
        IdMapping::Range { .. } => Some(id_mapped_tree(child, plan.directory)?),
    };
    handshake.send(tree.as_ref()).map_err(failed("start PID 1"))
}

/// Creates an ID-mapped mount of the directory, whose files belong to the users of
/// the namespace: mount_setattr(2), `MOUNT_ATTR_IDMAP`.
fn id_mapped_tree(child: Pid, directory: &[u8]) -> Result<OwnedFd, BootError> {
    let failed = |errno| BootError {
        stage: "make an ID-mapped mount",
        cause: BootCause::NoIdMappedMount(errno),
    };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, directory, flags).map_err(failed)?;
    let namespace = format!("/proc/{}/ns/user", child.as_raw_nonzero());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::open(namespace, flags, Mode::empty()).map_err(failed)?;
    sys::idmap_mount(&tree, &namespace).map_err(failed)?;
    Ok(tree)
}

/// Waits for the end of PID 1, and kills it on a signal. All other processes in
/// the namespaces have ended before it. Returns how it ended.
fn wait_for(child: Pid) -> Result<ExitCause, Errno> {
    let signals = sys::SignalFd::new()?;
    loop {
        let reaped = sys::reap_any()?.and_then(|exit| exit.reaped());
        if let Some(reaped) = reaped.filter(|reaped| reaped.pid == child) {
            return Ok(reaped.cause);
        }
        let mut waiting = [PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        if signals.drain()? {
            // It fails only if PID 1 has ended.
            let _ = kill_process(child, Signal::KILL);
        }
    }
}
