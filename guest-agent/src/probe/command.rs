use alloc::{format, string::String};

use vmcell_wire::{Cause, Packed, Start};

use super::{Finding, Timing};
use crate::{
    clock::Moment,
    process::{Asked, ProcessId, Processes, Role},
    service::{World, background},
};

/// Runs a program again and again.
///
/// ```text
///            time has come             it has ended, or takes too long
///  Pausing ----------------> Running ----------------------------------> Ending
///     ^                                                                    |
///     +---------------------- its whole tree is gone ----------------------+
/// ```
pub(super) struct Command {
    state: State,
}

enum State {
    Pausing {
        until: Moment,
    },
    Running {
        process: ProcessId,
        began: Moment,
        late: Moment,
    },
    Ending {
        process: ProcessId,
        began: Moment,
        finding: Finding,
    },
}

impl Command {
    /// One that begins at a moment.
    pub(super) fn new(begin: Moment) -> Self {
        Self {
            state: State::Pausing { until: begin },
        }
    }

    /// Goes on. The program is `argv`; all else is as for the service itself.
    pub(super) fn next(
        &mut self,
        start: &Start<'_>,
        argv: Packed<'_>,
        timing: Timing,
        world: &mut World<'_>,
    ) -> Option<Finding> {
        let now = world.now;
        match &self.state {
            State::Pausing { until } if *until <= now => {
                let start = Start {
                    argv,
                    ..background(start)
                };
                match run(&start, world) {
                    Ok(process) => {
                        self.state = State::Running {
                            process,
                            began: now,
                            late: now.after_ms(timing.attempt_ms.into()),
                        };
                        None
                    }
                    Err(reason) => {
                        let until = now.after_ms(timing.interval_ms.into());
                        self.state = State::Pausing { until };
                        Some(Finding::Failure(reason))
                    }
                }
            }
            State::Pausing { .. } => None,
            State::Running {
                process,
                began,
                late,
            } => {
                let (process, began) = (*process, *began);
                let ended = world.processes.get_mut(process);
                if let Some(failure) = ended.as_ref().and_then(|ended| ended.start_failure()) {
                    world.processes.let_go(process);
                    let until = now.after_ms(timing.interval_ms.into());
                    self.state = State::Pausing { until };
                    return Some(Finding::failure(failure.text));
                }
                let finding = match ended.map(|process| process.ending.cause()) {
                    Some(None) if *late > now => return None,
                    Some(None) => {
                        world.processes.kill(process, Asked::Timeout);
                        Finding::no_answer(timing.attempt_ms)
                    }
                    Some(Some(cause)) => finding(cause),
                    None => Finding::failure("it is gone"),
                };
                self.state = State::Ending {
                    process,
                    began,
                    finding,
                };
                self.gone(timing, world)
            }
            State::Ending { .. } => self.gone(timing, world),
        }
    }

    /// What was found, when nothing of the program is left.
    fn gone(&mut self, timing: Timing, world: &mut World<'_>) -> Option<Finding> {
        let State::Ending {
            process,
            began,
            finding,
        } = &self.state
        else {
            return None;
        };
        let (process, began) = (*process, *began);
        if world.processes.get_mut(process).is_some() {
            world.processes.settle(process)?;
        }
        let finding = finding.clone();
        world.processes.let_go(process);
        let until = began.after_ms(timing.interval_ms.into());
        self.state = State::Pausing { until };
        Some(finding)
    }

    pub(super) fn is(&self, wanted: ProcessId) -> bool {
        match &self.state {
            State::Pausing { .. } => false,
            State::Running { process, .. } | State::Ending { process, .. } => *process == wanted,
        }
    }

    pub(super) fn is_asking(&self) -> bool {
        !matches!(self.state, State::Pausing { .. })
    }

    pub(super) fn alarm(&self) -> Option<Moment> {
        match &self.state {
            State::Pausing { until } => Some(*until),
            State::Running { late, .. } => Some(*late),
            State::Ending { .. } => None,
        }
    }

    pub(super) fn end(self, processes: &mut Processes) {
        match self.state {
            State::Pausing { .. } => {}
            State::Running { process, .. } | State::Ending { process, .. } => {
                processes.abandon(process);
            }
        }
    }
}

fn run(start: &Start<'_>, world: &mut World<'_>) -> Result<ProcessId, String> {
    let World {
        processes, poller, ..
    } = world;
    let nowhere = processes.nowhere().map_err(super::errno::words)?;
    processes
        .start_for_service(start, Role::Probe, nowhere, poller)
        .map_err(|failure| String::from(failure.text))
}

fn finding(cause: Cause) -> Finding {
    match cause {
        Cause::Code(0) => Finding::Success,
        Cause::Code(code) => Finding::Failure(format!("exit code {code}")),
        Cause::Signal(signal) => Finding::Failure(format!("ended by signal {signal}")),
        Cause::OutOfMemory => Finding::failure("out of memory"),
        _ => Finding::failure("it was killed"),
    }
}
