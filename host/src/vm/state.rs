//! What a VM may do next. Pure: the driver performs the actions.
//!
//! ```text
//!            StopRequested              StopDeadline
//!  Running ----------------> Stopping ---------------+
//!     |                         |                    v
//!     +--- KillRequested, LinkLost, -----------> Killing
//!     |                         |                    |
//!     +------- VmmExited -------+--------------------+---> Ended
//! ```
//!
//! A VM is first seen here when its agent has said hello: before that it has
//! no handle, and ends with the future that boots it.

use std::fmt;

/// What a VM is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VmState {
    /// It serves.
    Running,
    /// The guest ends its processes and makes its disk clean.
    Stopping,
    /// It was ended by force and is about to be gone.
    Killing(End),
    /// It is gone, and has left nothing behind.
    Ended(End),
}

/// Why a VM ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was stopped: its processes were ended and its disk was made clean.
    Stopped,
    /// The caller killed it.
    Killed,
    /// It was asked to stop and did not in time, so it was killed.
    StopTimedOut,
    /// Its guest or its VMM ended by itself.
    Died,
    /// Its agent did not keep the protocol, so it was killed.
    Untrustworthy,
    /// Another program owned it and knows why.
    Unknown,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "it was stopped",
            Self::Killed => "it was killed",
            Self::StopTimedOut => "it did not stop in time and was killed",
            Self::Died => "it died",
            Self::Unknown => "it ended, or the program that owned it did",
            Self::Untrustworthy => "its agent broke the protocol, so it was killed",
        })
    }
}

/// What can happen to a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    StopRequested,
    KillRequested,
    StopDeadline,
    LinkLost,
    VmmExited,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    AskForPowerOff,
    ArmStopDeadline,
    KillVmm,
}

/// The next state, and what has to be done to get there.
pub(super) fn step(state: VmState, event: Event) -> (VmState, &'static [Action]) {
    use VmState::{Ended, Killing, Running, Stopping};
    const KILL: &[Action] = &[Action::KillVmm];
    match (state, event) {
        (Ended(_), _) => (state, &[]),
        (Running, Event::VmmExited) => (Ended(End::Died), &[]),
        (Stopping, Event::VmmExited) => (Ended(End::Stopped), &[]),
        (Killing(end), Event::VmmExited) => (Ended(end), &[]),
        (Running, Event::StopRequested) => {
            (Stopping, &[Action::AskForPowerOff, Action::ArmStopDeadline])
        }
        (Running | Stopping, Event::KillRequested) => (Killing(End::Killed), KILL),
        (Stopping, Event::StopDeadline) => (Killing(End::StopTimedOut), KILL),
        (Running, Event::LinkLost) => (Killing(End::Untrustworthy), KILL),
        // The link goes down before the VMM does.
        (Stopping, Event::StopRequested | Event::LinkLost)
        | (Running, Event::StopDeadline)
        | (Killing(_), _) => (state, &[]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::StopRequested),
            Just(Event::KillRequested),
            Just(Event::StopDeadline),
            Just(Event::LinkLost),
            Just(Event::VmmExited),
        ]
    }

    proptest! {
        #[test]
        fn a_vm_ends_once_and_is_killed_at_most_once(
            events in prop::collection::vec(event(), 0..30),
        ) {
            let mut state = VmState::Running;
            let mut kills = 0;
            for event in events {
                let was_ended = matches!(state, VmState::Ended(_));
                let (next, actions) = step(state, event);
                kills += actions.iter().filter(|action| **action == Action::KillVmm).count();
                prop_assert!(!was_ended || (next == state && actions.is_empty()));
                prop_assert!(event != Event::VmmExited || matches!(next, VmState::Ended(_)));
                prop_assert!(matches!(next, VmState::Ended(_)) <= (was_ended || event == Event::VmmExited));
                state = next;
            }
            prop_assert!(kills <= 1);
        }
    }

    #[test]
    fn the_cause_of_the_end_is_the_first_one() {
        let (state, _) = step(VmState::Running, Event::KillRequested);
        let (state, _) = step(state, Event::LinkLost);
        let (state, _) = step(state, Event::VmmExited);
        assert_eq!(state, VmState::Ended(End::Killed));
    }
}
