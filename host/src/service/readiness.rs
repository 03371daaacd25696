use std::time::Duration;

use vmcell_wire::{PackedBuf, service::Ready};

use super::{HttpProbe, Probe, millis};

/// When a service that was started is ready.
///
/// ```
/// use std::time::Duration;
/// use vmcell::service::{Probe, Readiness};
///
/// let slow = Readiness::new(Probe::tcp(5432))
///     .delay(Duration::from_secs(2))
///     .timeout(Duration::from_secs(120));
/// // With everything as it is by default.
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
    /// From one attempt to the next, if not set.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(500);

    /// When it must be ready, if not set.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// How long one attempt may take, if not set.
    pub const DEFAULT_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

    /// It is ready when this probe succeeds for the first time.
    pub fn new(probe: impl Into<Probe>) -> Self {
        Self {
            probe: probe.into(),
            delay: Duration::ZERO,
            interval: Self::DEFAULT_INTERVAL,
            timeout: Self::DEFAULT_TIMEOUT,
            attempt: Self::DEFAULT_ATTEMPT_TIMEOUT,
        }
    }

    /// How long after the start the first attempt is made; at once if not set.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How long it is from one attempt to the next, 10 ms at least. Files and
    /// log lines are noticed at once, however long it is.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How long after its start it must be ready. Else it is ended, and has
    /// [failed](super::ServiceTrouble::NotReady).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long one attempt may take before it has failed.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt = timeout;
        self
    }

    pub(super) fn as_wire<'a>(&'a self, words: &'a PackedBuf) -> Ready<'a> {
        Ready {
            probe: self.probe.as_wire(words),
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
