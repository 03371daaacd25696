//! The state machine of a VM. It is pure: the driver performs the actions.
//!
//! ```text
//!  Paused ---------------------+
//!     ^  Paused, Resumed       | StopRequested
//!     v                        v        StopDeadline
//!  Running ----------------> Stopping ---------------+
//!     |                         |                    v
//!     +--- KillRequested, LinkLost, -----------> Killing
//!     |                         |                    |
//!     +------- VmmExited -------+--------------------+---> Ended
//! ```
//!
//! It begins when the agent has sent its hello. Before that a VM has no handle,
//! and ends with the future that boots it.

use std::process::ExitStatus;

use super::{End, VmEnd};

/// The state of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VmState {
    /// It runs, and its agent has answered.
    Running,
    /// It is [paused](crate::Vm::pause).
    Paused,
    /// The guest ends its processes and makes its disk clean.
    Stopping,
    /// It was killed for this reason, and has not ended yet.
    Killing(End),
    /// It has ended, and left no process, socket or temporary file behind.
    Ended(VmEnd),
}

/// An event of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    StopRequested,
    KillRequested,
    StopDeadline,
    LinkLost,
    Paused,
    Resumed,
    VmmExited(VmmExit),
}

/// How the VMM exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VmmExit {
    pub(super) status: Option<ExitStatus>,
    pub(super) report: Report,
    /// Whether it was killed because it had used up its processor time.
    pub(super) has_used_cpu_time: bool,
}

/// The agent's report at the end of a power-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// There is none.
    Missing,
    /// The disk is clean.
    Clean,
    /// The disk could not be made clean.
    NotClean,
    /// The guest powers off. Older agents report nothing about the disk.
    PoweringOff,
}

impl VmmExit {
    /// Returns the end of a VM that was being stopped.
    pub(super) fn end_of_stop(self) -> VmEnd {
        let succeeded = self.status.is_some_and(|status| status.success());
        let reason = match self.report {
            Report::Clean if succeeded => End::Stopped,
            Report::NotClean if succeeded => End::NotClean,
            Report::PoweringOff if succeeded => End::StoppedUnproven,
            _ => return self.unexpected_end(),
        };
        self.end(reason)
    }

    /// Returns the end of a VM that nobody has ended.
    fn unexpected_end(self) -> VmEnd {
        self.end(match self.has_used_cpu_time {
            true => End::CpuTimeUsed,
            false => End::Died,
        })
    }

    fn end(self, reason: End) -> VmEnd {
        VmEnd {
            reason,
            status: self.status,
        }
    }
}

/// What the driver has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    PowerOff,
    ArmStopDeadline,
    KillVmm,
    Resume,
}

/// Returns the next state, and the actions that lead to it.
pub(super) fn step(state: VmState, event: Event) -> (VmState, &'static [Action]) {
    use VmState::{Ended, Killing, Paused, Running, Stopping};
    const KILL: &[Action] = &[Action::KillVmm];
    match (state, event) {
        (Ended(_), _) => (state, &[]),
        (Running | Paused, Event::VmmExited(exit)) => (Ended(exit.unexpected_end()), &[]),
        (Stopping, Event::VmmExited(exit)) => (Ended(exit.end_of_stop()), &[]),
        (Killing(reason), Event::VmmExited(exit)) => (Ended(exit.end(reason)), &[]),
        (Running, Event::StopRequested) => (Stopping, &[Action::PowerOff, Action::ArmStopDeadline]),
        (Running, Event::Paused) => (Paused, &[]),
        (Paused, Event::Resumed) => (Running, &[]),
        // Only a guest that runs can be powered off.
        (Paused, Event::StopRequested) => (Stopping, &[Action::Resume, Action::ArmStopDeadline]),
        (Stopping, Event::Paused) => (Stopping, &[Action::Resume]),
        (Stopping, Event::Resumed) => (Stopping, &[Action::PowerOff]),
        (Running | Paused | Stopping, Event::KillRequested) => (Killing(End::Killed), KILL),
        (Stopping, Event::StopDeadline) => (Killing(End::StopTimedOut), KILL),
        (Running | Paused, Event::LinkLost) => (Killing(End::ProtocolViolation), KILL),
        // While stopping, the link closes before the VMM exits.
        (Stopping, Event::StopRequested | Event::LinkLost)
        | (Running, Event::StopDeadline | Event::Resumed)
        | (Paused, Event::StopDeadline | Event::Paused)
        | (Killing(_), _) => (state, &[]),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use proptest::prelude::*;

    use super::*;

    /// Exit statuses as encoded by wait(2).
    const SUCCESS: i32 = 0;
    const SIGKILL: i32 = 9;
    const FAILURE: i32 = 1 << 8;

    fn exited(status: i32, report: Report) -> Event {
        Event::VmmExited(VmmExit {
            status: Some(ExitStatus::from_raw(status)),
            report,
            has_used_cpu_time: false,
        })
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::StopRequested),
            Just(Event::KillRequested),
            Just(Event::StopDeadline),
            Just(Event::LinkLost),
            Just(Event::Paused),
            Just(Event::Resumed),
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
    fn a_paused_vm_is_resumed_before_it_is_powered_off() {
        let (state, actions) = step(VmState::Running, Event::Paused);
        assert_eq!((state, actions), (VmState::Paused, &[][..]));
        let (state, actions) = step(state, Event::StopRequested);
        assert_eq!(state, VmState::Stopping);
        assert_eq!(actions, [Action::Resume, Action::ArmStopDeadline]);
        let (state, actions) = step(state, Event::Resumed);
        assert_eq!(
            (state, actions),
            (VmState::Stopping, &[Action::PowerOff][..])
        );
    }

    #[test]
    fn a_pause_that_was_under_way_when_the_vm_was_stopped_is_undone() {
        let (state, _) = step(VmState::Running, Event::StopRequested);
        let (state, actions) = step(state, Event::Paused);
        assert_eq!((state, actions), (VmState::Stopping, &[Action::Resume][..]));
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
    fn a_vm_that_has_used_its_processor_time_ends_for_that_unless_it_was_ended_before() {
        let exit = Event::VmmExited(VmmExit {
            status: Some(ExitStatus::from_raw(SIGKILL)),
            report: Report::Missing,
            has_used_cpu_time: true,
        });
        for (before, reason) in [
            (VmState::Running, End::CpuTimeUsed),
            (VmState::Paused, End::CpuTimeUsed),
            (VmState::Stopping, End::CpuTimeUsed),
            (VmState::Killing(End::Killed), End::Killed),
        ] {
            let status = Some(ExitStatus::from_raw(SIGKILL));
            let (state, _) = step(before, exit);
            assert_eq!(state, VmState::Ended(VmEnd { reason, status }));
        }
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
