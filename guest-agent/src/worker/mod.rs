//! Worker processes, which do work that may block.
//!
//! The agent must always respond, and a disk may be slow. So a worker does all
//! work on files: a fork of the agent that runs one job at a time, in blocking
//! code.
//!
//! ```text
//!           jobs ──bytes──> SharedRing ──> JobIo ──> files
//!  agent    jobs <──bytes── SharedRing <── JobIo <── files   worker
//!                <══ wakeups (eventfd) ══>
//! ```
//!
//! Bytes go through shared memory: the agent sends what a worker reads from a
//! file without copying it.

/// The input that follows a request begins at a multiple of this.
pub(crate) const PAGE: u64 = if cfg!(all(loom, test)) { 8 } else { 4096 };

mod control_word;
mod job_error;
mod job_io;
#[cfg(all(loom, test))]
mod modelled_wakeup;
mod run;
#[cfg(not(all(loom, test)))]
mod wakeup;

pub(crate) use control_word::ControlWord;
pub(crate) use job_error::{FileError, FileResult, JobError, JobResult};
pub(crate) use job_io::JobIo;
#[cfg(all(loom, test))]
pub(crate) use modelled_wakeup::Wakeup;
pub(crate) use run::run;
#[cfg(not(all(loom, test)))]
pub(crate) use wakeup::Wakeup;
