//! Decides whether and when a service is restarted, without I/O.

use vmcell_wire::{
    ExitCause,
    service::{Restart, RestartPolicy},
};

use super::phase::{AfterExit, FailureReason};

/// The minimum pause, even if a host requests none.
const MIN_PAUSE_MS: u32 = 10;

/// Returns what to do after a run ended by itself.
pub(super) fn after_exit(policy: RestartPolicy, was_ready: bool, cause: ExitCause) -> AfterExit {
    let success = cause == ExitCause::Code(0);
    match policy {
        _ if !was_ready => AfterExit::Fail(FailureReason::Exited),
        RestartPolicy::Always => AfterExit::Restart,
        RestartPolicy::OnFailure if !success => AfterExit::Restart,
        RestartPolicy::Never if !success => AfterExit::Fail(FailureReason::Exited),
        RestartPolicy::Never | RestartPolicy::OnFailure => AfterExit::Stop,
    }
}

/// Returns what to do after a run was ended because of its probe.
pub(super) fn after_probe(
    policy: RestartPolicy,
    was_ready: bool,
    reason: FailureReason,
) -> AfterExit {
    if was_ready && policy != RestartPolicy::Never {
        AfterExit::Restart
    } else {
        AfterExit::Fail(reason)
    }
}

/// Exponential backoff.
#[derive(Default)]
pub(super) struct Backoff {
    /// The last pause; 0: none yet.
    last_ms: u32,
}

impl Backoff {
    /// Returns the next pause, after a run that was ready for `ready_ms`.
    pub(super) fn next_ms(&mut self, restart: &Restart, ready_ms: u64) -> u64 {
        let doubled = self.last_ms.saturating_mul(2);
        let pause = if ready_ms > restart.max_pause_ms.into() {
            restart.pause_ms
        } else {
            doubled.clamp(restart.pause_ms, restart.max_pause_ms.max(restart.pause_ms))
        };
        self.last_ms = pause.max(MIN_PAUSE_MS);
        self.last_ms.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RESTART: Restart = Restart {
        policy: RestartPolicy::Always,
        pause_ms: 100,
        max_pause_ms: 1000,
    };

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_good_run() {
        let mut backoff = Backoff::default();
        let pauses = [0; 6].map(|ready| backoff.next_ms(&RESTART, ready));
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(backoff.next_ms(&RESTART, 1000), 1000);
        assert_eq!(backoff.next_ms(&RESTART, 1001), 100);
        assert_eq!(backoff.next_ms(&RESTART, 0), 200);
    }

    #[test]
    fn no_pause_is_a_short_one() {
        let mut backoff = Backoff::default();
        let restart = Restart {
            pause_ms: 0,
            max_pause_ms: 0,
            ..RESTART
        };
        assert_eq!(backoff.next_ms(&restart, 0), 10);
        assert_eq!(backoff.next_ms(&restart, 5), 10);
    }

    #[test]
    fn policies_mean_what_they_say() {
        use RestartPolicy::{Always, Never, OnFailure};
        let died = || AfterExit::Fail(FailureReason::Exited);
        let success = ExitCause::Code(0);
        for cause in [
            ExitCause::Code(1),
            ExitCause::Signal(9),
            ExitCause::OutOfMemory,
            ExitCause::Killed,
        ] {
            assert_eq!(after_exit(Never, true, cause), died());
            assert_eq!(after_exit(OnFailure, true, cause), AfterExit::Restart);
            assert_eq!(after_exit(Always, true, cause), AfterExit::Restart);
        }
        assert_eq!(after_exit(Never, true, success), AfterExit::Stop);
        assert_eq!(after_exit(OnFailure, true, success), AfterExit::Stop);
        assert_eq!(after_exit(Always, true, success), AfterExit::Restart);
        for policy in [Never, OnFailure, Always] {
            assert_eq!(after_exit(policy, false, success), died());
            assert_eq!(after_exit(policy, false, ExitCause::Code(1)), died());
        }
    }

    proptest! {
        #[test]
        fn a_pause_keeps_its_bounds(
            pause_ms in any::<u32>(),
            more in any::<u32>(),
            runs in prop::collection::vec(any::<u64>(), 1..50),
        ) {
            let restart = Restart { pause_ms, max_pause_ms: pause_ms.saturating_add(more), ..RESTART };
            let mut backoff = Backoff::default();
            for ready in runs {
                let pause = backoff.next_ms(&restart, ready);
                prop_assert!(pause >= pause_ms.into());
                prop_assert!(pause <= restart.max_pause_ms.max(MIN_PAUSE_MS).into());
            }
        }
    }
}
