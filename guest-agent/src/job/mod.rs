//! Jobs that the agent gives to worker processes: see [`worker`](crate::worker).
//!
//! ```text
//!            request                    outcome
//!  (idle) ------------> Job under way ------------> (idle, or ended)
//!                            |
//!                            +-- cancelled: the worker reports when it has stopped
//! ```
//!
//! A job belongs to the stream that requested it. When the link is lost, the job
//! is cancelled; it cannot be resumed.

#[cfg(all(loom, test))]
mod model;
mod table;
mod worker_handle;

pub(crate) use table::Jobs;

/// How many bytes of a job's output may wait for the link. In a model few, so that it is
/// full soon.
const OUTPUT_CAPACITY: usize = if cfg!(all(loom, test)) {
    24
} else {
    2 * 1024 * 1024
};

/// How much input a host may send before the worker has read any of it: enough to
/// keep the link busy while a worker waits for the disk.
pub(crate) const JOB_WINDOW: u32 = 1024 * 1024;

/// Room for [`JOB_WINDOW`] and for a request.
const INPUT_CAPACITY: usize = 1024 * 1024 + 256 * 1024;
