//! Whether and when a service is started again: pure.

use vmcell_wire::{
    Cause,
    service::{Restart, RestartPolicy},
};

use super::phase::{FailureReason, Then};

/// Not even a host that asks for no pause has a service started more often.
const SHORTEST_PAUSE_MS: u32 = 10;

/// What becomes of a service whose run has ended by itself.
pub(super) fn after_exit(policy: RestartPolicy, was_ready: bool, cause: Cause) -> Then {
    let success = cause == Cause::Code(0);
    match policy {
        _ if !was_ready => Then::Fail(FailureReason::Died),
        RestartPolicy::Always => Then::Restart,
        RestartPolicy::OnFailure if !success => Then::Restart,
        RestartPolicy::Never if !success => Then::Fail(FailureReason::Died),
        RestartPolicy::Never | RestartPolicy::OnFailure => Then::Stop,
    }
}

/// The same for one whose run is ended because its probe says so.
pub(super) fn after_probe(policy: RestartPolicy, was_ready: bool, reason: FailureReason) -> Then {
    if was_ready && policy != RestartPolicy::Never {
        Then::Restart
    } else {
        Then::Fail(reason)
    }
}

/// Pauses that grow.
#[derive(Default)]
pub(super) struct Backoff {
    /// The last pause; 0: there was none.
    last_ms: u32,
}

impl Backoff {
    /// The next pause, after a run that was ready for so long.
    pub(super) fn next_ms(&mut self, restart: &Restart, ready_ms: u64) -> u64 {
        let doubled = self.last_ms.saturating_mul(2);
        let pause = if ready_ms > restart.max_pause_ms.into() {
            restart.pause_ms
        } else {
            doubled.clamp(restart.pause_ms, restart.max_pause_ms.max(restart.pause_ms))
        };
        self.last_ms = pause.max(SHORTEST_PAUSE_MS);
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
        let died = || Then::Fail(FailureReason::Died);
        let success = Cause::Code(0);
        for cause in [
            Cause::Code(1),
            Cause::Signal(9),
            Cause::OutOfMemory,
            Cause::Killed,
        ] {
            assert_eq!(after_exit(Never, true, cause), died());
            assert_eq!(after_exit(OnFailure, true, cause), Then::Restart);
            assert_eq!(after_exit(Always, true, cause), Then::Restart);
        }
        assert_eq!(after_exit(Never, true, success), Then::Stop);
        assert_eq!(after_exit(OnFailure, true, success), Then::Stop);
        assert_eq!(after_exit(Always, true, success), Then::Restart);
        for policy in [Never, OnFailure, Always] {
            assert_eq!(after_exit(policy, false, success), died());
            assert_eq!(after_exit(policy, false, Cause::Code(1)), died());
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
                prop_assert!(pause <= restart.max_pause_ms.max(SHORTEST_PAUSE_MS).into());
            }
        }
    }
}
