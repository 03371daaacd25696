//! Namespaces of its own: namespaces(7).

use std::{fs, io};

use rustix::{
    process::{Pid, getegid, geteuid},
    system::sethostname,
    thread::UnshareFlags,
};

use crate::sys;

/// Enters new namespaces. The namespace of processes is that of its children. Returns which
/// they are.
pub(crate) fn enter() -> io::Result<&'static str> {
    let flags = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS;
    // Root needs no user namespace, and gets a user of its own.
    let detail = match sys::unshare(flags) {
        Ok(()) => "mounts, processes, network, IPC, host name",
        Err(_) => {
            enter_user_namespace(flags)?;
            "users, mounts, processes, network, IPC, host name"
        }
    };
    sethostname(b"vmcell")?;
    Ok(detail)
}

/// Enters a user namespace too, which has this user only.
fn enter_user_namespace(flags: UnshareFlags) -> io::Result<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    sys::unshare(flags | UnshareFlags::NEWUSER)?;
    // Who may not drop groups can be allowed to map its own: user_namespaces(7).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))
}

/// Makes the first process of the namespaces, a child of the caller like this one. Returns
/// `None` in it.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    sys::fork_sibling()
}
