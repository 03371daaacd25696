//! The only unsafe code of the agent: system calls that rustix has no safe
//! wrapper for.
#![allow(unsafe_code)]

#[cfg(feature = "network")]
mod bpf;
mod cgroup_namespace;
mod child;
mod clone;
#[cfg(feature = "network")]
mod datagram;
mod descriptors;
mod entropy;
mod fork;
mod grow;
mod kill;
mod launch;
mod limit;
mod loopback;
mod mapping;
#[cfg(all(loom, test))]
mod modelled_memory;
mod namespaces;
mod raw;
mod scheduling;
mod secret_strings;
mod session;
#[cfg(feature = "files")]
mod shared;
#[cfg(all(feature = "files", not(all(loom, test))))]
mod shared_memory;
mod signals;
mod vsock;
mod wait;

#[cfg(feature = "network")]
pub(crate) use bpf::{
    BpfInstruction, attach_lookup_program, load_lookup_program, replace_lookup_program, socket_map,
};
pub use cgroup_namespace::CGROUPS;
pub(crate) use cgroup_namespace::{CGROUP_PARENT, CgroupNamespace};
pub(crate) use child::ChildFailure;
pub(crate) use clone::clone_into_namespaces;
#[cfg(feature = "network")]
pub(crate) use datagram::{receive_datagram, report_destinations, send_datagram};
pub use descriptors::stdin_copy;
pub(crate) use descriptors::{first_closed_stream, inherited, set_cloexec_on_all, standard_error};
pub(crate) use entropy::{add_entropy, reseed};
pub use fork::exit_immediately;
pub(crate) use fork::{exit, fork};
pub(crate) use grow::grow_file_system;
pub(crate) use kill::{signal_all_processes, signal_group, signal_process};
pub(crate) use launch::{ChildPlan, Credentials, Launch, Launcher};
pub(crate) use limit::{ResourceLimit, descriptor_limit, raise_descriptor_limit};
pub(crate) use loopback::raise_loopback;
pub(crate) use mapping::Mapping;
pub(crate) use namespaces::{idmap_mount, make_mount_read_only, unshare_cgroups};
pub(crate) use scheduling::use_batch_scheduling;
#[cfg(feature = "terminals")]
pub(crate) use session::group_of;
pub(crate) use session::session_of;
#[cfg(feature = "files")]
pub(crate) use shared::{Consumer, Producer, SharedRing};
pub(crate) use signals::{
    SignalFd, SignalSet, discards_exit_statuses, ignored_signals, is_ended_by_sigpipe,
    reset_and_block_signals,
};
pub(crate) use vsock::{VsockAddress, vsock_peer, vsock_socket};
pub(crate) use wait::{has_children, reap_any, reap_by_handle};

use rustix::io::Errno;

/// Converts the result of a C library call that returns -1 and sets errno on
/// failure.
fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    match i32::try_from(result) {
        // The error number is in errno.
        Ok(-1) => Err(last_error()),
        _ => Ok(result),
    }
}

fn last_error() -> Errno {
    // SAFETY: the C library gives every thread a valid location for its errno.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
