//! The only unsafe code of the agent: what rustix has no safe call for.
#![allow(unsafe_code)]

mod child;
mod clone;
mod contain;
mod descriptors;
mod entropy;
mod fork;
mod kill;
mod launch;
mod limit;
mod loopback;
mod mapping;
mod namespaces;
mod raw;
mod scheduling;
mod session;
mod shared;
mod signals;
mod vsock;
mod wait;

pub(crate) use child::ChildFailure;
pub(crate) use clone::clone_into_namespaces;
pub(crate) use contain::CgroupNamespace;
pub use descriptors::standard_input;
pub(crate) use descriptors::{inherited, keep_descriptors_from_children, standard_error};
pub(crate) use entropy::add_entropy;
pub use fork::end_this_process;
pub(crate) use fork::{exit, fork};
pub(crate) use kill::{signal_everyone, signal_group, signal_process};
pub(crate) use launch::{ChildPlan, Credentials, Launch, Launcher, ResourceLimit};
pub(crate) use limit::raise_descriptor_limit;
pub(crate) use loopback::raise_loopback;
pub(crate) use mapping::Mapping;
pub(crate) use namespaces::{shift_owners, unshare_cgroups};
pub(crate) use scheduling::wait_for_our_turn;
pub(crate) use session::session_of;
pub(crate) use shared::{Consumer, Producer, SharedRing};
pub(crate) use signals::{SignalFd, take_over_signals};
pub(crate) use vsock::{VsockAddress, vsock_peer, vsock_socket};
pub(crate) use wait::{Reaped, reap};

use rustix::io::Errno;

/// The result of a raw system call: a negative error number, or a value.
fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    match i32::try_from(result) {
        // libc::syscall answers -1 and leaves the number in errno.
        Ok(-1) => Err(last_error()),
        _ => Ok(result),
    }
}

fn last_error() -> Errno {
    // SAFETY: the C library gives every thread a valid place for its errno.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
