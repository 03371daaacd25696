use std::time::Duration;

use vmcell_wire::{PackedBuf, service::Alive};

use super::{HttpProbe, Probe, Readiness, millis};

/// When a service that is ready is found to work no more, though it runs. Its
/// run is ended then, and started again if its [`Restart`](super::Restart) says
/// so.
///
/// ```
/// use std::time::Duration;
/// use vmcell::service::{Liveness, Probe};
///
/// let strict = Liveness::new(Probe::http(8080, "/health"))
///     .interval(Duration::from_secs(1))
///     .failures(2);
/// # let _ = strict;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Liveness {
    pub(super) probe: Probe,
    interval: Duration,
    attempt: Duration,
    failures: u32,
}

impl Liveness {
    /// From one attempt to the next, if not set.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);

    /// How many failures in a row are too many, if not set.
    pub const DEFAULT_FAILURES: u32 = 3;

    /// It is alive as long as this probe succeeds. A probe for
    /// [log lines](Probe::log) cannot tell that, and is refused.
    pub fn new(probe: impl Into<Probe>) -> Self {
        Self {
            probe: probe.into(),
            interval: Self::DEFAULT_INTERVAL,
            attempt: Readiness::DEFAULT_ATTEMPT_TIMEOUT,
            failures: Self::DEFAULT_FAILURES,
        }
    }

    /// How long it is from one attempt to the next, 10 ms at least.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How long one attempt may take before it has failed.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt = timeout;
        self
    }

    /// How many failures in a row end the run; at least one.
    pub fn failures(mut self, count: u32) -> Self {
        self.failures = count.max(1);
        self
    }

    pub(super) fn as_wire<'a>(&'a self, words: &'a PackedBuf) -> Alive<'a> {
        Alive {
            probe: self.probe.as_wire(words),
            interval_ms: millis(self.interval),
            attempt_ms: millis(self.attempt),
            failures: self.failures,
        }
    }
}

impl From<Probe> for Liveness {
    fn from(probe: Probe) -> Self {
        Self::new(probe)
    }
}

impl From<HttpProbe> for Liveness {
    fn from(probe: HttpProbe) -> Self {
        Self::new(probe)
    }
}
