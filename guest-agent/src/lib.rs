//! The agent that runs as PID 1 in every vmcell guest.
//!
//! One thread, one epoll loop. [`Agent`] owns all state; the kernel delivers
//! events, and hosts send requests over links. The agent never blocks on a
//! request, bounds everything it stores, and has no deliberate panics: when PID
//! 1 dies, the VM is dead.
//!
//! ```text
//!  epoll ──> event ──> agent ──┬─> link      frames, credit, streams
//!                              ├─> dispatch  routes items to their handlers
//!                              ├─> process   children, their pipes and rings
//!                              ├─> cgroup    the cgroups of children
//!                              ├─> job       file requests, run by workers
//!                              ├─> service   supervised processes
//!                              ├─> port      TCP connections to programs
//!                              ├─> write_back  flushing of a persistent disk
//!                              └─> power     orderly power-off
//! ```
//!
//! The same code runs as an ordinary program over a Unix socket. It then mounts
//! nothing, has no cgroups, and powering off ends the program.
#![no_std]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

extern crate alloc;

mod agent;
pub mod boot;
mod cgroup;
mod clock;
mod console;
mod deadlines;
mod dispatch;
mod event;
mod files;
mod ids;
mod job;
mod kernel_log;
mod link;
mod port;
mod power;
mod probe;
mod process;
mod ring;
mod service;
#[allow(clippy::as_conversions)]
mod sys;
mod tasks;
mod user;
mod worker;
mod write_back;

/// The folder of this package's source, for build scripts that build its
/// programs for guests.
pub const SOURCE: &str = env!("CARGO_MANIFEST_DIR");

pub use agent::{Agent, AgentConfig, StopReason, serve_guest};
pub use console::Console;
pub use rustix::io::Errno;
pub use sys::{exit_immediately, stdin_copy};
