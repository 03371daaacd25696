//! A process of the agent's own that does what may take long.
//!
//! The agent must always answer, and a disk may be slow. So whatever touches
//! files is done by a worker: a fork of the agent that waits for the disk
//! instead of it, one job at a time, in plain blocking code.
//!
//! ```text
//!           jobs ──bytes──> SharedRing ──> Line ──> files
//!  agent    jobs <──bytes── SharedRing <── Line <── files   worker
//!                <══ bells (eventfd) ══>
//! ```
//!
//! Bytes go through memory that both see: what a worker reads from a file goes
//! from there straight to the link.

/// Input begins at a multiple of this.
pub(crate) const PAGE: u64 = 4096;

mod bell;
mod line;
mod orders;
mod run;
mod stop;

pub(crate) use bell::Bell;
pub(crate) use line::Line;
pub(crate) use orders::Orders;
pub(crate) use run::run;
pub(crate) use stop::{Stop, Trouble};
