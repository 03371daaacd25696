use std::time::Duration;

use vmcell_wire::service::{LivenessProbe, Probe as WireProbe};

use super::{HttpProbe, Probe, Readiness, millis};

/// How to detect that a ready service no longer works although it runs. Its run
/// is then killed, and restarted if its [`Restart`](super::Restart) policy says
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
    /// The default time between two attempts.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);

    /// The default number of consecutive failures.
    pub const DEFAULT_FAILURES: u32 = 3;

    /// Considers the service alive as long as this probe succeeds. A probe for
    /// [log lines](Probe::log) cannot check that and is rejected.
    pub fn new(probe: impl Into<Probe>) -> Self {
        Self {
            probe: probe.into(),
            interval: Self::DEFAULT_INTERVAL,
            attempt: Readiness::DEFAULT_ATTEMPT_TIMEOUT,
            failures: Self::DEFAULT_FAILURES,
        }
    }

    /// Sets the time between two attempts, at least 10 ms.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the timeout of one attempt.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt = timeout;
        self
    }

    /// Sets how many consecutive failures end the run; at least one.
    pub fn failures(mut self, count: u32) -> Self {
        self.failures = count.max(1);
        self
    }

    /// Converts it for the wire, with its prepared probe.
    pub(super) fn as_wire<'a>(&self, probe: WireProbe<'a>) -> LivenessProbe<'a> {
        LivenessProbe {
            probe,
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
