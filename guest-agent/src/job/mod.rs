//! Work that the agent has others do: see [`worker`](crate::worker).
//!
//! ```text
//!            request                    outcome
//!  (idle) ------------> Job under way ------------> (idle, or ended)
//!                            |
//!                            +-- cancelled: the worker says when it has stopped
//! ```
//!
//! A job belongs to the stream that asked for it. It is not resumed when the
//! link is lost: it is cancelled.

mod staff;
mod table;

pub(crate) use table::{JobId, Jobs};

/// How many bytes of a job's output wait for the link.
const OUTGOING: usize = 2 * 1024 * 1024;

/// How much input a host may send before any of it is taken: enough to keep
/// the link busy while a worker waits for the disk.
pub(crate) const JOB_WINDOW: u32 = 1024 * 1024;

/// Room for that, and for a request.
const INCOMING: usize = 1024 * 1024 + 256 * 1024;
