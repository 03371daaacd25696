use std::time::{Duration, SystemTime};

/// What was read of a VM, and what it used since the reading before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    /// The time since sampling began, by a clock that nobody can set.
    pub(super) elapsed: Duration,
    /// The time by the clock of this machine.
    pub(super) time: SystemTime,
    /// The time since the reading before.
    pub(super) interval: Duration,
    /// The processor time since the reading before.
    pub(super) cpu: Duration,
    pub(super) memory_bytes: u64,
    pub(super) disk_bytes: Option<u64>,
    /// As the guest counts them.
    pub(super) processes: Option<u32>,
    /// Bytes of the link since the reading before.
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
}

/// Returns the share of one processor in percent, 0 for no time at all.
pub(super) fn percent(cpu: Duration, time: Duration) -> f32 {
    match time.is_zero() {
        true => 0.0,
        false => (100.0 * cpu.div_duration_f64(time)) as f32,
    }
}
