use std::time::Duration;

use vmcell_wire::service::{Restart as Wire, RestartPolicy};

use super::millis;

/// Whether a service that has ended by itself is started again, and when.
///
/// One that was never ready is not, whatever is said here: its start has
/// failed, and who waits for it is told so at once.
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
    first: Duration,
    longest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Never,
    OnFailure,
    Always,
}

impl Restart {
    /// The pause before the first restart, if not set: so short that who uses
    /// the service hardly notices a single crash.
    pub const DEFAULT_FIRST_PAUSE: Duration = Duration::from_millis(100);

    /// The longest pause, if not set: what always crashes costs one start in
    /// that time, and what works again is found out within it.
    pub const DEFAULT_LONGEST_PAUSE: Duration = Duration::from_secs(10);

    /// It is not started again.
    pub fn never() -> Self {
        Self::with(Policy::Never)
    }

    /// It is started again unless it exited with code 0.
    pub fn on_failure() -> Self {
        Self::with(Policy::OnFailure)
    }

    /// It is started again however it ended.
    pub fn always() -> Self {
        Self::with(Policy::Always)
    }

    /// How long to wait before it is started again: `first`, then twice as long
    /// each time, up to `longest`. After a run that was ready for longer than
    /// `longest` it begins with `first` again.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    fn with(policy: Policy) -> Self {
        Self {
            policy,
            first: Self::DEFAULT_FIRST_PAUSE,
            longest: Self::DEFAULT_LONGEST_PAUSE,
        }
    }

    pub(super) fn as_wire(self) -> Wire {
        Wire {
            policy: match self.policy {
                Policy::Never => RestartPolicy::Never,
                Policy::OnFailure => RestartPolicy::OnFailure,
                Policy::Always => RestartPolicy::Always,
            },
            pause_ms: millis(self.first),
            max_pause_ms: millis(self.longest.max(self.first)),
        }
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self::never()
    }
}
