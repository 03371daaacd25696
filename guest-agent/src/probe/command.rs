use alloc::{format, string::String};

use vmcell_wire::{ExitCause, PackedStrings, Start};

use super::{ProbeResult, Timing, connect_error::describe};
use crate::{
    clock::Moment,
    ids::ProcessId,
    process::{Context, KillReason, Processes, Role, background},
};

/// A probe that runs a program again and again.
///
/// ```text
///            time is up                it has ended, or takes too long
///  Pausing ----------------> Running ----------------------------------> Ending
///     ^                                                                    |
///     +---------------------- its whole tree has ended ----------------------+
/// ```
pub(super) struct CommandProbe {
    state: State,
}

enum State {
    Pausing {
        until: Moment,
    },
    Running {
        process: ProcessId,
        began: Moment,
        deadline: Moment,
    },
    Ending {
        process: ProcessId,
        began: Moment,
        result: ProbeResult,
    },
}

impl CommandProbe {
    /// Creates a probe that starts at `begin`.
    pub(super) fn new(begin: Moment) -> Self {
        Self {
            state: State::Pausing { until: begin },
        }
    }

    /// Advances the probe. The program is `argv`; everything else is as for the
    /// service itself.
    pub(super) fn poll(
        &mut self,
        start: &Start<'_>,
        argv: PackedStrings<'_>,
        timing: Timing,
        context: &mut Context<'_>,
    ) -> Option<ProbeResult> {
        let now = context.now;
        match &self.state {
            State::Pausing { until } if *until <= now => {
                let start = Start {
                    argv,
                    ..background(start)
                };
                match run(&start, context) {
                    Ok(process) => {
                        self.state = State::Running {
                            process,
                            began: now,
                            deadline: now.after_ms(timing.attempt_ms.into()),
                        };
                        None
                    }
                    Err(reason) => {
                        let until = now.after_ms(timing.interval_ms.into());
                        self.state = State::Pausing { until };
                        Some(ProbeResult::Failure(reason))
                    }
                }
            }
            State::Pausing { .. } => None,
            State::Running {
                process,
                began,
                deadline,
            } => {
                let (process, began) = (*process, *began);
                let ended = context.processes.get_mut(process);
                if let Some(failure) = ended.as_ref().and_then(|ended| ended.start_failure()) {
                    context.processes.release(process);
                    let until = now.after_ms(timing.interval_ms.into());
                    self.state = State::Pausing { until };
                    return Some(ProbeResult::failure(failure.text));
                }
                let result = match ended.map(|process| process.termination.cause()) {
                    Some(None) if *deadline > now => return None,
                    Some(None) => {
                        context.processes.kill(process, KillReason::Timeout);
                        ProbeResult::no_answer(timing.attempt_ms)
                    }
                    Some(Some(cause)) => result(cause),
                    None => ProbeResult::failure("the process is gone"),
                };
                self.state = State::Ending {
                    process,
                    began,
                    result,
                };
                self.poll_end(timing, context)
            }
            State::Ending { .. } => self.poll_end(timing, context),
        }
    }

    /// Returns the result once the program and its descendants have ended.
    fn poll_end(&mut self, timing: Timing, context: &mut Context<'_>) -> Option<ProbeResult> {
        let State::Ending {
            process,
            began,
            result,
        } = &self.state
        else {
            return None;
        };
        let (process, began) = (*process, *began);
        if context.processes.get_mut(process).is_some() {
            context.processes.finalize_exit(process)?;
        }
        let result = result.clone();
        context.processes.release(process);
        let until = began.after_ms(timing.interval_ms.into());
        self.state = State::Pausing { until };
        Some(result)
    }

    pub(super) fn runs_as(&self, wanted: ProcessId) -> bool {
        match &self.state {
            State::Pausing { .. } => false,
            State::Running { process, .. } | State::Ending { process, .. } => *process == wanted,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        !matches!(self.state, State::Pausing { .. })
    }

    pub(super) fn next_deadline(&self) -> Option<Moment> {
        match &self.state {
            State::Pausing { until } => Some(*until),
            State::Running { deadline, .. } => Some(*deadline),
            State::Ending { .. } => None,
        }
    }

    pub(super) fn stop(self, processes: &mut Processes) {
        match self.state {
            State::Pausing { .. } => {}
            State::Running { process, .. } | State::Ending { process, .. } => {
                processes.abandon(process);
            }
        }
    }
}

fn run(start: &Start<'_>, context: &mut Context<'_>) -> Result<ProcessId, String> {
    let Context {
        processes, poller, ..
    } = context;
    let dev_null = processes.dev_null().map_err(describe)?;
    processes
        .start_for_service(start, Role::Probe, dev_null, poller)
        .map_err(|failure| String::from(failure.text))
}

fn result(cause: ExitCause) -> ProbeResult {
    match cause {
        ExitCause::Code(0) => ProbeResult::Success,
        ExitCause::Code(code) => ProbeResult::Failure(format!("exit code {code}")),
        ExitCause::Signal(signal) => ProbeResult::Failure(format!("ended by signal {signal}")),
        ExitCause::OutOfMemory => ProbeResult::failure("out of memory"),
        _ => ProbeResult::failure("it was killed"),
    }
}
