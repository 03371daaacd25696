use std::time::Duration;

use vmcell_wire::service::{Probe as WireProbe, ReadinessProbe};

use super::{HttpProbe, Probe, millis};

/// How to detect that a started service is ready.
///
/// ```
/// use std::time::Duration;
/// use vmcell::service::{Probe, Readiness};
///
/// let slow = Readiness::new(Probe::tcp(5432))
///     .delay(Duration::from_secs(2))
///     .timeout(Duration::from_secs(120));
/// // With all defaults.
/// let plain = Readiness::from(Probe::tcp(5432));
/// # let _ = (slow, plain);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Readiness {
    pub(super) probe: Probe,
    delay: Duration,
    interval: Duration,
    timeout: Duration,
    attempt: Duration,
}

impl Readiness {
    /// The default time between two attempts.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(500);

    /// The default time within which it must be ready.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// The default timeout of one attempt.
    pub const DEFAULT_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

    /// Considers the service ready when this probe succeeds for the first time.
    pub fn new(probe: impl Into<Probe>) -> Self {
        Self {
            probe: probe.into(),
            delay: Duration::ZERO,
            interval: Self::DEFAULT_INTERVAL,
            timeout: Self::DEFAULT_TIMEOUT,
            attempt: Self::DEFAULT_ATTEMPT_TIMEOUT,
        }
    }

    /// Sets the time from the start to the first attempt; zero by default.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the time between two attempts, at least 10 ms. Files and log lines
    /// are noticed at once whatever the interval.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the time within which it must be ready after its start. Otherwise
    /// it is killed and has [failed](super::FailureReason::NotReady).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the timeout of one attempt.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt = timeout;
        self
    }

    /// Converts it for the wire, with its prepared probe.
    pub(super) fn as_wire<'a>(&self, probe: WireProbe<'a>) -> ReadinessProbe<'a> {
        ReadinessProbe {
            probe,
            delay_ms: millis(self.delay),
            interval_ms: millis(self.interval),
            attempt_ms: millis(self.attempt),
            timeout_ms: millis(self.timeout),
        }
    }
}

impl From<Probe> for Readiness {
    fn from(probe: Probe) -> Self {
        Self::new(probe)
    }
}

impl From<HttpProbe> for Readiness {
    fn from(probe: HttpProbe) -> Self {
        Self::new(probe)
    }
}
