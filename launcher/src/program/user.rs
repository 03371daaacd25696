use std::{
    ffi::OsStr,
    fs, io,
    os::{
        fd::BorrowedFd,
        unix::fs::{MetadataExt as _, lchown},
    },
};

use rustix::{
    fs::fstat,
    io::Errno,
    process::{Gid, Uid, geteuid},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use vmcell_launcher::{Layer, LayerStatus, OwnUser, Plan};

use crate::sys;

/// Becomes another user, if root was told to and that can use all that it needs.
pub(crate) fn change(plan: &Plan) -> io::Result<LayerStatus> {
    let inactive = |reason: String| Ok(LayerStatus::inactive(Layer::User, reason));
    let Some(user) = &plan.own_user else {
        let id = geteuid().as_raw();
        return inactive(format!("only root can change it: it is user {id}"));
    };
    if plan.no_namespaces.is_some() {
        return inactive("it needs the caller's folders, without namespaces".to_owned());
    }
    if let Some(path) = unusable(plan)? {
        return inactive(format!("others may not read {path}"));
    }
    match become_user(plan, user) {
        Ok(()) => Ok(LayerStatus::active(Layer::User, user.id.to_string())),
        // This root is one of a user namespace, such as a container, that has few users.
        Err(error) if is_refused(&error) => {
            inactive(format!("this root may not become user {}", user.id))
        }
        Err(error) => Err(error),
    }
}

fn become_user(plan: &Plan, user: &OwnUser) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.id), Gid::from_raw(user.id));
    for folder in &plan.writable {
        // With the sockets that it connects to.
        for entry in fs::read_dir(folder)? {
            lchown(entry?.path(), Some(user.id), Some(user.id))?;
        }
        lchown(folder, Some(user.id), Some(user.id))?;
    }
    let groups: Vec<_> = user.groups.iter().copied().map(Gid::from_raw).collect();
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

fn is_refused(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::INVAL | Errno::PERM))
}

/// Returns the first file that another user than root could not use.
fn unusable(plan: &Plan) -> io::Result<Option<String>> {
    const READ: u32 = 0o4;
    const READ_AND_WRITE: u32 = 0o6;
    const SEARCH: u32 = 0o5;
    for path in &plan.readable {
        let needed = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => (metadata.mode(), SEARCH),
            Ok(metadata) => (metadata.mode(), READ),
            // It is not needed.
            Err(_) => continue,
        };
        if needed.0 & needed.1 != needed.1 {
            return Ok(Some(OsStr::display(path).to_string()));
        }
    }
    for number in &plan.reopened {
        let descriptor: BorrowedFd<'_> = sys::borrow_descriptor(*number)?;
        if fstat(descriptor)?.st_mode & READ_AND_WRITE != READ_AND_WRITE {
            return Ok(Some(format!("the file of descriptor {number}")));
        }
    }
    Ok(None)
}
