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

use std::process::ExitStatus;

use super::{End, VmEnd};

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
    Ended(VmEnd),
}

/// What can happen to a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    StopRequested,
    KillRequested,
    StopDeadline,
    LinkLost,
    VmmExited(VmmExit),
}

/// How the VMM ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VmmExit {
    pub(super) status: Option<ExitStatus>,
    pub(super) report: Report,
}

/// What the agent reported at the end of a power-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Nothing.
    Missing,
    /// That the disk is clean.
    Clean,
    /// That the disk could not be made clean.
    NotClean,
    /// That it powers off. Agents of older versions report no more.
    PoweringOff,
}

impl VmmExit {
    /// The end of a VM that was being stopped.
    pub(super) fn end_of_stop(self) -> VmEnd {
        let succeeded = self.status.is_some_and(|status| status.success());
        let reason = match self.report {
            Report::Clean if succeeded => End::Stopped,
            Report::NotClean if succeeded => End::NotClean,
            Report::PoweringOff if succeeded => End::StoppedUnproven,
            _ => End::Died,
        };
        self.end(reason)
    }

    fn end(self, reason: End) -> VmEnd {
        VmEnd {
            reason,
            status: self.status,
        }
    }
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    PowerOff,
    ArmStopDeadline,
    KillVmm,
}

/// The next state, and what has to be done to get there.
pub(super) fn step(state: VmState, event: Event) -> (VmState, &'static [Action]) {
    use VmState::{Ended, Killing, Running, Stopping};
    const KILL: &[Action] = &[Action::KillVmm];
    match (state, event) {
        (Ended(_), _) => (state, &[]),
        (Running, Event::VmmExited(exit)) => (Ended(exit.end(End::Died)), &[]),
        (Stopping, Event::VmmExited(exit)) => (Ended(exit.end_of_stop()), &[]),
        (Killing(reason), Event::VmmExited(exit)) => (Ended(exit.end(reason)), &[]),
        (Running, Event::StopRequested) => (Stopping, &[Action::PowerOff, Action::ArmStopDeadline]),
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
    use std::os::unix::process::ExitStatusExt as _;

    use proptest::prelude::*;

    use super::*;

    /// As wait(2) encodes them.
    const SUCCESS: i32 = 0;
    const SIGKILL: i32 = 9;
    const FAILURE: i32 = 1 << 8;

    fn exited(status: i32, report: Report) -> Event {
        Event::VmmExited(VmmExit {
            status: Some(ExitStatus::from_raw(status)),
            report,
        })
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::StopRequested),
            Just(Event::KillRequested),
            Just(Event::StopDeadline),
            Just(Event::LinkLost),
            Just(exited(SUCCESS, Report::Clean)),
            Just(exited(SIGKILL, Report::Missing)),
        ]
    }

    fn is_exit(event: Event) -> bool {
        matches!(event, Event::VmmExited(_))
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
                prop_assert!(!is_exit(event) || matches!(next, VmState::Ended(_)));
                prop_assert!(matches!(next, VmState::Ended(_)) <= (was_ended || is_exit(event)));
                state = next;
            }
            prop_assert!(kills <= 1);
        }
    }

    #[test]
    fn the_cause_of_the_end_is_the_first_one() {
        let (state, _) = step(VmState::Running, Event::KillRequested);
        let (state, _) = step(state, Event::LinkLost);
        let (state, _) = step(state, exited(SIGKILL, Report::Missing));
        let status = Some(ExitStatus::from_raw(SIGKILL));
        let reason = End::Killed;
        assert_eq!(state, VmState::Ended(VmEnd { reason, status }));
    }

    #[test]
    fn only_a_reported_clean_disk_and_a_successful_exit_make_a_clean_stop() {
        let end_of = |status, report| {
            let (state, _) = step(VmState::Running, Event::StopRequested);
            match step(state, exited(status, report)).0 {
                VmState::Ended(end) => end.reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(end_of(SUCCESS, Report::Clean), End::Stopped);
        assert_eq!(end_of(SUCCESS, Report::NotClean), End::NotClean);
        assert_eq!(end_of(SUCCESS, Report::PoweringOff), End::StoppedUnproven);
        assert_eq!(end_of(SUCCESS, Report::Missing), End::Died);
        for report in [Report::Clean, Report::PoweringOff, Report::Missing] {
            assert_eq!(end_of(SIGKILL, report), End::Died);
            assert_eq!(end_of(FAILURE, report), End::Died);
        }
    }
}
