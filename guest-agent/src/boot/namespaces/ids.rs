use alloc::format;

use rustix::{
    fs::{Gid, Mode, OFlags, Uid},
    io::Errno,
    process::Pid,
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use vmcell_wire::namespaces::IdMapping;

/// Sets the uid and gid maps of a process's user namespace: user_namespaces(7).
pub(super) fn map(process: Pid, ids: IdMapping) -> Result<(), Errno> {
    let file = |name: &str, text: &str| write(process, name, text);
    match ids {
        IdMapping::Single { uid, gid } => {
            file("uid_map", &format!("0 {uid} 1"))?;
            // Otherwise a process could drop a group that is denied access.
            file("setgroups", "deny")?;
            file("gid_map", &format!("0 {gid} 1"))
        }
        IdMapping::Range { first, count } => {
            let map = format!("0 {first} {count}");
            file("uid_map", &map)?;
            file("gid_map", &map)
        }
    }
}

fn write(process: Pid, name: &str, text: &str) -> Result<(), Errno> {
    let path = format!("/proc/{}/{name}", process.as_raw_nonzero());
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(|_| ())
}

/// Becomes root of the user namespace that this process is in.
pub(super) fn become_root(ids: IdMapping) -> Result<(), Errno> {
    if let IdMapping::Range { .. } = ids {
        set_thread_groups(&[])?;
    }
    let (uid, gid) = (Uid::ROOT, Gid::ROOT);
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}
