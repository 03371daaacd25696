//! File operations, which run in a [worker](crate::worker).
//!
//! Each operation has a module. They share these:
//!
//! - [`root`]: opens paths within the root of the job; [`resolve`]: follows
//!   symbolic links on the way;
//! - [`owner`]: the owner of new entries;
//! - [`entry`]: describes an entry;
//! - [`temporary`]: files without a name, or with a temporary one;
//! - [`directory_stack`]: the open directories of a depth-first traversal.
//!
//! Temporary files and names are removed when their object is dropped, so no
//! failure leaves any behind.

mod copy;
mod copy_content;
mod digest;
mod directory;
mod directory_stack;
mod edit;
mod entry;
mod make_directory;
mod owner;
mod owner_names;
mod read;
mod receive;
mod recursive;
mod remove;
mod rename;
mod resolve;
mod root;
mod send;
mod set_mode;
mod set_owner;
mod stat;
mod symlink;
mod sync;
mod target;
mod temporary;
mod touch;
mod usage;
mod walk;
mod watch;
mod write;
mod xattrs;

use vmcell_wire::{
    FailureKind,
    files::{FileOperation, FileRequest},
};

use self::root::Root;
use crate::worker::{FileError, JobIo, JobResult};

/// Clears the umask, so that entries get the permissions of the request. To be
/// called once, when a worker starts.
pub(crate) fn clear_umask() {
    rustix::process::umask(rustix::fs::Mode::empty());
}

/// Performs a request.
pub(crate) fn perform(io: &mut JobIo, request: &FileRequest<'_>) -> JobResult<()> {
    let root = Root::open(request.root)?;
    match request.operation {
        FileOperation::Read {
            path,
            offset,
            length,
        } => read::perform(io, &root, path, offset, length),
        FileOperation::Write(write) => write::perform(io, &root, &write),
        FileOperation::Stat {
            path,
            follow,
            digest,
        } => stat::perform(io, &root, path, follow, digest),
        FileOperation::MakeDirectory { path, mode, owner } => {
            make_directory::perform(io, &root, path, mode, owner)
        }
        FileOperation::Remove { path, tree } => remove::perform(io, &root, path, tree),
        FileOperation::Rename { from, to, replace } => {
            rename::perform(io, &root, from, to, replace)
        }
        FileOperation::Copy { from, to, owner } => copy::perform(io, &root, from, to, owner),
        FileOperation::SetMode { path, mode, tree } => {
            set_mode::perform(io, &root, path, mode, tree)
        }
        FileOperation::SetOwner { path, owner, tree } => {
            set_owner::perform(io, &root, path, owner, tree)
        }
        FileOperation::Symlink {
            path,
            target,
            owner,
        } => symlink::perform(io, &root, path, target, owner),
        FileOperation::Touch {
            path,
            modified,
            owner,
        } => touch::perform(io, &root, path, modified, owner),
        FileOperation::Sync { path } => sync::perform(&root, path),
        FileOperation::Edit { path, owner } => edit::perform(io, &root, path, owner),
        FileOperation::Walk(walk) => walk::perform(io, &root, &walk),
        FileOperation::Usage { path } => usage::perform(io, &root, path),
        FileOperation::Receive(receive) => receive::perform(io, &root, &receive),
        FileOperation::Send(send) => send::perform(io, &root, &send),
        FileOperation::Watch {
            path,
            recursive,
            debounce_ms,
        } => {
            // The kernel reports no removal of a directory that is still open.
            drop(root);
            let target = watch::WatchTarget {
                root: request.root,
                path,
                recursive,
            };
            watch::perform(io, target, debounce_ms)
        }
        _ => Err(FileError::new(
            FailureKind::Unsupported,
            "the file operation is not supported",
        )
        .into()),
    }
}
