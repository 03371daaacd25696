use std::time::Duration;

use vmcell_wire::service::{Restart as Wire, RestartPolicy};

use super::millis;

/// The restart policy of a service that has ended by itself.
///
/// A service that was never ready is not restarted, whatever the policy: its
/// start has failed, and clients that wait for it get the failure at once.
///
/// ```
/// use std::time::Duration;
/// use vmcell::service::Restart;
///
/// let patient = Restart::on_failure()
///     .backoff(Duration::from_secs(1), Duration::from_secs(60));
/// # let _ = patient;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Restart {
    policy: Policy,
    initial: Duration,
    max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Never,
    OnFailure,
    Always,
}

impl Restart {
    /// The default delay before the first restart, so short that users of the
    /// service hardly notice a single crash.
    pub const DEFAULT_INITIAL_DELAY: Duration = Duration::from_millis(100);

    /// The default maximum delay. A service that always crashes costs one start
    /// in this time, and one that works again is noticed within it.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(10);

    /// Never restarts it.
    pub fn never() -> Self {
        Self::with(Policy::Never)
    }

    /// Restarts it unless it exited with code 0.
    pub fn on_failure() -> Self {
        Self::with(Policy::OnFailure)
    }

    /// Restarts it however it ended.
    pub fn always() -> Self {
        Self::with(Policy::Always)
    }

    /// Sets the delay before a restart: `initial`, then twice as long each
    /// time, up to `max`. After a run that was ready for longer than `max` it
    /// starts with `initial` again.
    pub fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.initial = initial;
        self.max = max;
        self
    }

    fn with(policy: Policy) -> Self {
        Self {
            policy,
            initial: Self::DEFAULT_INITIAL_DELAY,
            max: Self::DEFAULT_MAX_DELAY,
        }
    }

    pub(super) fn as_wire(self) -> Wire {
        Wire {
            policy: match self.policy {
                Policy::Never => RestartPolicy::Never,
                Policy::OnFailure => RestartPolicy::OnFailure,
                Policy::Always => RestartPolicy::Always,
            },
            pause_ms: millis(self.initial),
            max_pause_ms: millis(self.max.max(self.initial)),
        }
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self::never()
    }
}
