//! Runs a command in the foreground: connects its streams or collects them.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use vmcell::{Cause, Error, ExecStream, Exit, Output, Vm};
use vmcell_cli::signals::Signals;

use crate::{
    command::Job,
    exit_code::{self, of_cause, of_exit},
    failure::say,
    input, output, result,
    stream::{self, End},
};

/// How long after its timeout a command may still report its end. The guest
/// enforces the timeout by its own clock, so that all output up to then
/// arrives; only if it fails to, the timeout is enforced here.
const GRACE: Duration = Duration::from_secs(1);

/// How long to wait for confirmation that a command we killed has ended.
const CONFIRMATION: Duration = Duration::from_secs(2);

/// How a command ended.
pub(crate) struct Outcome {
    pub(crate) code: u8,
    /// Whether a signal sent to us ended it.
    pub(crate) interrupted: bool,
    /// The result as JSON, if it was asked for.
    pub(crate) result: Option<Value>,
    /// The tag of a command that we killed and that has not reported its exit.
    ending: Option<String>,
}

impl Outcome {
    /// Waits until a command that we killed has ended.
    pub(crate) async fn settle(&self, vm: &Vm) {
        if let Some(tag) = &self.ending {
            // An error that there is no such process means the same.
            let _ = timeout(CONFIRMATION, vm.processes().kill(tag.as_str())).await;
        }
    }
}

/// Runs a command until it ends, or until something ends it.
pub(crate) async fn run(vm: &Vm, mut job: Job, signals: &mut Signals) -> anyhow::Result<Outcome> {
    if job.stdin.is_some() {
        job.command = job.command.stdin_stream();
    }
    let events = vm.exec_stream(job.command)?;
    let tag = events.tag().map(str::to_owned);
    if let Some(reader) = job.stdin {
        input::forward(reader, events.input());
    }
    let watching = async {
        if job.json {
            collect(vm, events).await
        } else {
            copy(events, job.timeout, job.max_output).await
        }
    };
    // Dropping the future that reads the command's events kills the command.
    let (seen, interrupted) = tokio::select! {
        seen = watching => (seen?, false),
        code = signals.next() => (Seen::new(code, Ended::No), true),
    };
    Ok(Outcome {
        code: seen.code,
        interrupted,
        result: seen.result,
        ending: tag.filter(|_| seen.ended == Ended::No),
    })
}

/// What was learned of a command.
struct Seen {
    code: u8,
    ended: Ended,
    result: Option<Value>,
}

impl Seen {
    fn new(code: u8, ended: Ended) -> Self {
        Self {
            code,
            ended,
            result: None,
        }
    }
}

/// Whether a command has reported its exit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

/// Collects the command's output, for JSON.
async fn collect(vm: &Vm, events: ExecStream) -> anyhow::Result<Seen> {
    let (output, cause) = match events.wait_with_output().await {
        Ok(output) => {
            let cause = output.exit.map(|exit| exit.cause);
            (output, cause)
        }
        Err(Error::ExecTimeout { partial, .. }) => (*partial, Some(Cause::Timeout)),
        Err(Error::OutputLimit { partial, .. }) => (*partial, Some(Cause::OutputLimit)),
        Err(error) => return Err(error.into()),
    };
    let code = cause.map_or(exit_code::OUR_OWN, of_cause);
    Ok(Seen {
        result: Some(result::of_output(vm.id(), &output, cause)),
        ..Seen::new(code, ended(&output))
    })
}

fn ended(output: &Output) -> Ended {
    match output.exit {
        Some(_) => Ended::Yes,
        None => Ended::No,
    }
}

/// Copies the command's outputs to ours.
async fn copy(
    events: ExecStream,
    time: Option<Duration>,
    max_output: Option<u64>,
) -> anyhow::Result<Seen> {
    let copying = stream::copy(events, max_output);
    let end = match time {
        None => copying.await?,
        Some(time) => match timeout(time.saturating_add(GRACE), copying).await {
            Ok(end) => end?,
            Err(_) => {
                say_timed_out(time);
                return Ok(Seen::new(exit_code::TIMED_OUT, Ended::No));
            }
        },
    };
    Ok(match end {
        End::Exited(exit) => {
            explain(&exit, time);
            Seen::new(of_exit(&exit), Ended::Yes)
        }
        End::TooMuch { output, limit } => {
            let name = output::name(output);
            say(&format!(
                "the command printed more than {limit} bytes to {name}, and was ended"
            ));
            Seen::new(exit_code::TOO_MUCH_OUTPUT, Ended::No)
        }
        End::Unread => Seen::new(exit_code::UNREAD, Ended::No),
    })
}

/// Explains an exit that the exit code alone leaves ambiguous.
fn explain(exit: &Exit, time: Option<Duration>) {
    match exit.cause {
        Cause::Timeout => say_timed_out(time.unwrap_or(exit.wall_time)),
        Cause::OutOfMemory => say("the command ran out of memory, and was ended"),
        Cause::Killed => say("the command was killed"),
        _ => {}
    }
}

fn say_timed_out(time: Duration) {
    say(&format!("timed out after {} s", time.as_secs()));
}
