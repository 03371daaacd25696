//! Runs a command in the foreground: connects its streams or collects them.

use std::{pin::pin, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use vmcell::{Cause, Error, ExecStream, Exit, Output, Signal, Vm};
use vmcell_cli::signals::Signals;

use crate::{
    command::PreparedCommand,
    exit_code::{self, of_cause, of_exit},
    failure::report,
    input,
    output::{self, Outputs},
    result,
    stream::{self, CopyEnd},
    target::Target,
};

/// How long after its timeout a command may still report its end. The guest
/// enforces the timeout by its own clock, so that all output up to then
/// arrives; only if it fails to, the timeout is enforced here.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);

/// How long to wait for confirmation that a command we killed has ended.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// How a command ended.
pub(crate) struct Outcome {
    pub(crate) code: u8,
    /// Whether we received a signal, which ended it or was passed on to it.
    pub(crate) interrupted: bool,
    /// The result as JSON, without the VM, if it was asked for.
    pub(crate) result: Option<Value>,
    /// The tag of a command that we killed and that has not reported its exit.
    unconfirmed_tag: Option<String>,
}

impl From<u8> for Outcome {
    /// The command has reported its exit.
    fn from(code: u8) -> Self {
        Self {
            code,
            interrupted: false,
            result: None,
            unconfirmed_tag: None,
        }
    }
}

impl Outcome {
    /// A signal sent to us ended the command with this tag.
    pub(crate) fn interrupted(code: u8, tag: &str) -> Self {
        Self {
            interrupted: true,
            unconfirmed_tag: Some(tag.to_owned()),
            ..code.into()
        }
    }

    /// Waits until a command that we killed has ended.
    pub(crate) async fn wait_until_ended(&self, vm: &Vm) {
        if let Some(tag) = &self.unconfirmed_tag {
            // An error that there is no such process means the same.
            let _ = timeout(KILL_TIMEOUT, vm.processes().kill(tag.as_str())).await;
        }
    }
}

/// Runs a command until it ends, or until something ends it.
pub(crate) async fn run(
    target: &Target,
    mut prepared: PreparedCommand,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let vm = &target.vm;
    if prepared.stdin.is_some() {
        prepared.command = prepared.command.stdin_stream();
    }
    let command = target.grant(prepared.command, &prepared.secrets).await?;
    let events = target.exec_stream(command).await?;
    let tag = events.tag().map(str::to_owned);
    if let Some(reader) = prepared.stdin {
        input::forward(reader, events.input());
    }
    let finished = async {
        if prepared.json {
            collect(events).await
        } else {
            copy(events, prepared.timeout, prepared.max_output).await
        }
    };
    let mut finished = pin!(finished);
    let mut was_passed_on = false;
    // Dropping the future that reads the command's events kills the command.
    let (end, interrupted) = loop {
        tokio::select! {
            end = &mut finished => break (end?, was_passed_on),
            code = signals.next() => {
                if !was_passed_on && pass_on(vm, tag.as_deref(), code).await {
                    was_passed_on = true;
                    continue;
                }
                break (CommandEnd::new(code, ExitReported::No), true);
            }
        }
    };
    Ok(Outcome {
        code: end.code,
        interrupted,
        result: end.result,
        unconfirmed_tag: tag.filter(|_| end.exit_reported == ExitReported::No),
    })
}

/// Passes a signal of the keyboard on to the command, which may clean up or
/// ignore it. Returns false for other signals, and if the command has none.
async fn pass_on(vm: &Vm, tag: Option<&str>, code: u8) -> bool {
    let signal = Signal::from_number(code.saturating_sub(exit_code::SIGNAL_BASE));
    let (Some(tag), Some(signal @ (Signal::INT | Signal::QUIT))) = (tag, signal) else {
        return false;
    };
    let sent = timeout(KILL_TIMEOUT, vm.processes().signal(tag, signal)).await;
    matches!(sent, Ok(Ok(())))
}

/// What was learned of a command.
struct CommandEnd {
    code: u8,
    exit_reported: ExitReported,
    result: Option<Value>,
}

impl CommandEnd {
    fn new(code: u8, exit_reported: ExitReported) -> Self {
        Self {
            code,
            exit_reported,
            result: None,
        }
    }
}

/// Whether a command has reported its exit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExitReported {
    Yes,
    No,
}

/// Collects the command's output, for JSON.
async fn collect(events: ExecStream) -> anyhow::Result<CommandEnd> {
    let (output, cause) = match events.wait_with_output().await {
        Ok(output) => {
            let cause = output.exit.map(|exit| exit.cause);
            (output, cause)
        }
        Err(Error::ExecTimeout { partial, .. }) => (*partial, Some(Cause::Timeout)),
        Err(Error::OutputLimit { partial, .. }) => (*partial, Some(Cause::OutputLimit)),
        Err(error) => return Err(error.into()),
    };
    let code = cause.map_or(exit_code::TOOL_FAILED, of_cause);
    Ok(CommandEnd {
        result: Some(result::output_as_json(&output, cause)),
        ..CommandEnd::new(code, exit_reported(&output))
    })
}

fn exit_reported(output: &Output) -> ExitReported {
    match output.exit {
        Some(_) => ExitReported::Yes,
        None => ExitReported::No,
    }
}

/// Copies the command's outputs to ours.
async fn copy(
    events: ExecStream,
    limit: Option<Duration>,
    max_output: Option<u64>,
) -> anyhow::Result<CommandEnd> {
    let copying = stream::copy(events, Outputs::for_command(), max_output);
    let end = match limit {
        None => copying.await?,
        Some(limit) => match timeout(limit.saturating_add(TIMEOUT_GRACE), copying).await {
            Ok(end) => end?,
            Err(_) => {
                print_timed_out(limit);
                return Ok(CommandEnd::new(exit_code::TIMED_OUT, ExitReported::No));
            }
        },
    };
    Ok(match end {
        CopyEnd::Exited(exit) => {
            print_cause(&exit, limit);
            CommandEnd::new(of_exit(&exit), ExitReported::Yes)
        }
        CopyEnd::OutputLimit { output, limit } => {
            let name = output::name(output);
            report(&format!(
                "the command printed more than {limit} bytes to {name} and was killed"
            ));
            CommandEnd::new(exit_code::TOO_MUCH_OUTPUT, ExitReported::No)
        }
        CopyEnd::ReaderGone => CommandEnd::new(exit_code::BROKEN_PIPE, ExitReported::No),
    })
}

/// Explains an exit that the exit code alone leaves ambiguous.
fn print_cause(exit: &Exit, limit: Option<Duration>) {
    match exit.cause {
        Cause::Timeout => print_timed_out(limit.unwrap_or(exit.wall_time)),
        Cause::OutOfMemory => report("the command ran out of memory and was killed"),
        Cause::Killed => report("the command was killed"),
        _ => {}
    }
}

fn print_timed_out(limit: Duration) {
    report(&format!("timed out after {} s", limit.as_secs()));
}
