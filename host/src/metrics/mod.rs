//! Metrics of a VM: processor, memory, disk, processes and link, for a day.
//!
//! The program that owns a VM takes a [`Sample`] of it every second, and keeps what it
//! has seen in three tiers of different resolution:
//!
//! | [`MetricsTier`] | keeps | one sample for |
//! |---|---|---|
//! | [`TenMinutes`](MetricsTier::TenMinutes) | 10 minutes | a second |
//! | [`TwoHours`](MetricsTier::TwoHours) | 2 hours | 10 seconds |
//! | [`OneDay`](MetricsTier::OneDay) | 24 hours | 2 minutes |
//!
//! [`Vm::metrics`](crate::Vm::metrics) returns a tier,
//! [`Vm::flush_metrics`](crate::Vm::flush_metrics) returns all of them and forgets them,
//! [`Vm::next_sample`](crate::Vm::next_sample) waits for a new sample. Attached programs
//! can do the same.
//!
//! All figures but one are those of this machine, so a guest cannot change them, and a
//! paused VM has metrics too. Only the [number of processes](Sample::processes) is what the
//! guest answers, which could answer what it likes: its own agent is asked each second. VMs
//! that are
//! [unlisted](crate::VmBuilder::unlisted) have none, and neither has what runs without a VM
//! (the backend `process`).
//!
//! # Memory
//! A sample takes 56 bytes. After 10 minutes a VM has 40 KiB of them, after a day 112 KiB,
//! and never more.
//!
//! ```text
//!  sampler task, every second ── Reading ──> Ring of each tier    (one Mutex)
//!    /proc/PID/stat, statm                      OpenBucket: of the time that goes on
//!    DiskFile, Session                          Records: of the time before
//!    ProcessCounter
//! ```

mod disk;
mod history;
mod process;
mod process_count;
mod reading;
mod request;
mod results;
mod ring;
mod sample;
mod sampler;
mod tier;
mod timer;

pub use results::{AllMetrics, Metrics};
pub use sample::Sample;
pub use tier::{MetricsTier, UnknownTier};

pub(crate) use disk::DiskFile;
pub(crate) use history::MetricsHistory;
#[cfg(test)]
pub(crate) use process_count::ProcessCounter;
pub(crate) use request::{MetricsRequest, NO_METRICS, serve, serve_flush};
pub(crate) use sampler::Sampler;
