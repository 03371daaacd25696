//! The agent that runs as PID 1 in every vmcell guest.
//!
//! One thread, one epoll loop. [`Agent`] owns all state; the kernel tells it
//! what happened as an event, the host tells it what to do over a link.
//! It never blocks on a request, holds nothing without a bound, and cannot
//! panic on purpose: when PID 1 dies, the VM is dead.
//!
//! ```text
//!  epoll ──> event ──> agent ──┬─> link      frames, credit, streams
//!                              ├─> dispatch  what a request asks for
//!                              ├─> process   children, their pipes and rings
//!                              ├─> cgroup    where children live and end
//!                              ├─> job       what workers do: files
//!                              ├─> service   processes that are looked after
//!                              ├─> port      connections to programs
//!                              ├─> write_back  the disk, if it is kept
//!                              └─> power     the orderly end
//! ```
//!
//! The same code runs as an ordinary program over a Unix socket; then it
//! mounts nothing, has no cgroups, and powering off ends the program.
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

pub use agent::{Agent, AgentConfig, Ending, serve_guest};
pub use console::Console;
pub use rustix::io::Errno;
pub use sys::{end_this_process, standard_input};
