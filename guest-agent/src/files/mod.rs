//! Work on files, as a [worker](crate::worker) does it.
//!
//! Each sort of work is a file of its own. They share these:
//!
//! - [`root`]: paths become descriptors within the root of the job, or nothing
//!   does; [`link_walk`]: which links are followed on the way;
//! - [`owner`]: whose new entries are;
//! - [`entry`]: what is told about an entry;
//! - [`temporary`]: files that have no name yet, or one that goes away;
//! - [`descent`]: what is below a directory, level by level.
//!
//! Nothing is left behind, whatever happens: what is open or has a name only
//! for a while belongs to an object whose end is its end.

mod content;
mod copy;
mod descent;
mod digest;
mod directory;
mod edit;
mod entry;
mod everywhere;
mod link_walk;
mod mode;
mod names;
mod owner;
mod ownership;
mod read;
mod receive;
mod remove;
mod rename;
mod root;
mod send;
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
    files::{Files, Work},
};

use self::root::Root;
use crate::worker::{Line, Stop, Trouble};

/// Makes permissions mean what requests say: once, when a worker starts.
pub(crate) fn begin() {
    rustix::process::umask(rustix::fs::Mode::empty());
}

/// Does what is asked for.
pub(crate) fn perform(line: &mut Line, request: &Files<'_>) -> Result<(), Stop> {
    let root = Root::open(request.root)?;
    match request.work {
        Work::Read {
            path,
            offset,
            length,
        } => read::perform(line, &root, path, offset, length),
        Work::Write(write) => write::perform(line, &root, &write),
        Work::Stat {
            path,
            follow,
            digest,
        } => stat::perform(line, &root, path, follow, digest),
        Work::MakeDirectory { path, mode, owner } => {
            directory::perform(line, &root, path, mode, owner)
        }
        Work::Remove { path, tree } => remove::perform(line, &root, path, tree),
        Work::Rename { from, to, replace } => rename::perform(line, &root, from, to, replace),
        Work::Copy { from, to, owner } => copy::perform(line, &root, from, to, owner),
        Work::SetMode { path, mode, tree } => mode::perform(line, &root, path, mode, tree),
        Work::SetOwner { path, owner, tree } => ownership::perform(line, &root, path, owner, tree),
        Work::Symlink {
            path,
            target,
            owner,
        } => symlink::perform(line, &root, path, target, owner),
        Work::Touch {
            path,
            modified,
            owner,
        } => touch::perform(line, &root, path, modified, owner),
        Work::Sync { path } => sync::perform(&root, path),
        Work::Edit { path, owner } => edit::perform(line, &root, path, owner),
        Work::Walk(walk) => walk::perform(line, &root, &walk),
        Work::Usage { path } => usage::perform(line, &root, path),
        Work::Receive(receive) => receive::perform(line, &root, &receive),
        Work::Send(send) => send::perform(line, &root, &send),
        Work::Watch {
            path,
            recursive,
            debounce_ms,
        } => {
            // What is held open is not seen to go away.
            drop(root);
            let subject = watch::Subject {
                root: request.root,
                path,
                recursive,
            };
            watch::perform(line, subject, debounce_ms)
        }
        _ => Err(Trouble::new(FailureKind::Unsupported, "no such work on files").into()),
    }
}
