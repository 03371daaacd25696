//! The agent of vmcell guests, as a library: it runs programs, moves files and
//! supervises services for hosts, over byte streams to them.
//!
//! In vmcell's own guests PID 1 runs it (`init.rs`). Any other program can run it
//! beside its own work, an init system or a single event loop.
//!
//! # Embedding
//!
//! The program polls the agent's descriptor, for at most the agent's
//! [`timeout`](Agent::timeout), and calls [`Agent::turn`], which never blocks.
//!
//! ```no_run
//! use std::os::{fd::OwnedFd, unix::net::UnixListener};
//!
//! use rustix::event::{PollFd, PollFlags, Timespec, poll};
//! use vmcell_agent::{Agent, Progress};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut agent = Agent::builder()
//!     .listener(OwnedFd::from(UnixListener::bind("/run/agent")?))
//!     .on_diagnostic(|diagnostic| eprintln!("agent: {diagnostic}"))
//!     .build()?;
//! while agent.turn()? == Progress::Serving {
//!     let timeout = agent.timeout().map(Timespec::try_from).transpose()?;
//!     let mut wanted = [PollFd::new(&agent, PollFlags::IN)]; // and the program's own
//!     poll(&mut wanted, timeout.as_ref())?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The agent changes nothing of the program: no signal mask or handler, and no
//! directory, limit or priority, unless the program [dedicates](program::dedicate)
//! its process to it. It waits for its own children only, by their pidfds; or the
//! program reaps all children and [hands them over](Reaping::HandedOver), as
//! `examples/own_init.rs` does. What a power-off means is for the program to say:
//! [`PowerControl`]; and how a copy of its machine takes a new identity:
//! [`IdentityControl`].
//!
//! # Requirements
//!
//! - Linux 5.11 or later on x86-64. Descendants that have left their process group
//!   can be killed from 5.14 on.
//! - An allocator. The library is `no_std`, and uses the C library, glibc or musl,
//!   for system calls that rustix lacks.
//! - Descriptors 0, 1 and 2 are open, SIGPIPE is ignored or blocked, and SIGCHLD is
//!   not ignored.
//! - It forks processes for work that may block, and these allocate. So the program
//!   has one thread, or an allocator and a C library whose locks are usable after
//!   fork(2), as those of glibc and musl are. The thread that runs the agent must
//!   not end before it: its forks end with that thread (PR_SET_PDEATHSIG).
//! - Whoever can connect to it has the rights of its user. Switching to other users
//!   takes root.
//! - `/dev/null` is there when it is built. All else is optional: `/proc` for
//!   foreground processes of terminals and what is left of a tree, cgroup2 for
//!   limits and the kill of whole trees, `/dev/kmsg` and `/proc/vmstat` for the
//!   cause "out of memory", `/etc/passwd` and `/etc/group` for names of users.
//!
//! # Features
//!
//! `files`, `terminals`, `services`, `ports` and `network` are on by default, and are
//! what the agent announces to hosts. Without one, its code is not compiled in, and its
//! requests are rejected as unsupported. `network` takes the program's
//! [consent](AgentBuilder::may_capture_network), too. `init` is for the program
//! `vmcell-init`.
//!
//! # Structure
//!
//! One thread, one epoll instance. [`Agent`] owns all state; the kernel delivers
//! events, and hosts send requests over links. The agent never blocks on a request,
//! bounds everything it stores, and has no deliberate panics: when PID 1 dies, the
//! VM is dead.
//!
//! ```text
//!  epoll ──> event ──> agent ──┬─> link      frames, credit, streams
//!                              ├─> dispatch  routes items to their handlers
//!                              ├─> process   children, their pipes and rings
//!                              ├─> cgroup    the cgroups of children
//!                              ├─> job       file requests, run by workers
//!                              ├─> service   supervised processes
//!                              ├─> port      TCP connections to programs
//!                              ├─> network   connections of programs to other machines
//!                              ├─> write_back  flushing of a persistent disk
//!                              ├─> power     orderly power-off
//!                              └─> snapshot  a new identity for copies of a VM
//! ```
#![no_std]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]
#![cfg_attr(
    not(all(
        feature = "files",
        feature = "network",
        feature = "ports",
        feature = "services",
        feature = "terminals"
    )),
    allow(
        dead_code,
        unreachable_patterns,
        reason = "what only the missing parts use"
    )
)]

extern crate alloc;

#[cfg(not(all(feature = "files", feature = "network", feature = "services")))]
mod absent;
mod agent;
pub mod boot;
mod builder;
mod capabilities;
mod cgroup;
mod child_exit;
mod children;
mod clock;
mod console;
mod deadlines;
mod diagnostic;
mod dispatch;
mod event;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod ids;
#[cfg(feature = "files")]
mod job;
mod kernel_error;
mod kernel_log;
mod link;
#[cfg(feature = "network")]
mod network;
#[cfg(feature = "ports")]
mod port;
mod power;
#[cfg(feature = "services")]
mod probe;
mod proc_numbers;
mod process;
pub mod program;
mod ring;
#[cfg(feature = "services")]
mod service;
mod snapshot;
#[allow(clippy::as_conversions)]
mod sys;
mod tasks;
#[cfg(feature = "services")]
mod truncated;
mod user;
#[cfg(feature = "files")]
mod worker;
mod write_back;

/// The folder of this package's source, for build scripts that build its
/// programs for guests.
pub const SOURCE: &str = env!("CARGO_MANIFEST_DIR");

pub use agent::{Agent, Progress};
pub use builder::{AgentBuilder, BuildError};
pub use child_exit::{ChildExit, ResourceUsage};
pub use children::Reaping;
pub use console::Console;
pub use diagnostic::Diagnostic;
pub use kernel_error::KernelError;
pub use power::{PowerControl, Signalled};
pub use rustix::io::Errno;
pub use snapshot::{IdentityControl, NewIdentity};
pub use sys::{exit_immediately, stdin_copy};
