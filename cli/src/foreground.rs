//! A command that runs while we watch it.

use std::time::Duration;

use tokio::time::timeout;
use vmcell::{Cause, Error, ExecStream, Exit, Output, Vm};

use crate::{
    command::Job,
    exit_code::{self, of_cause, of_exit},
    failure::{print_json, say},
    input, output, result,
    signals::Signals,
    stream::{self, End},
};

/// The guest ends a command that takes too long by its own clock, and tells
/// everything that was printed until then. If it has not by then, we do.
const GRACE: Duration = Duration::from_secs(1);

/// How long we wait for the end of a command that we ended.
const CONFIRMATION: Duration = Duration::from_secs(2);

/// What came of a command.
pub(crate) struct Outcome {
    pub(crate) code: u8,
    /// Whether a signal to us ended it.
    pub(crate) interrupted: bool,
    /// The tag of a command that we ended before it had told its end.
    ending: Option<String>,
}

impl Outcome {
    /// Waits until a command that we ended is gone.
    pub(crate) async fn settle(&self, vm: &Vm) {
        if let Some(tag) = &self.ending {
            // That there is no such process says so as well.
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
    // Dropping the future that watches the command ends it.
    let ((code, ended), interrupted) = tokio::select! {
        outcome = watching => (outcome?, false),
        code = signals.next() => ((code, Ended::No), true),
    };
    Ok(Outcome {
        code,
        interrupted,
        ending: tag.filter(|_| ended == Ended::No),
    })
}

/// Whether a command has told its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

/// Collects what the command prints, and prints the result.
async fn collect(vm: &Vm, events: ExecStream) -> anyhow::Result<(u8, Ended)> {
    let (output, cause) = match events.wait_with_output().await {
        Ok(output) => {
            let cause = output.exit.map(|exit| exit.cause);
            (output, cause)
        }
        Err(Error::ExecTimeout { partial, .. }) => (*partial, Some(Cause::Timeout)),
        Err(Error::OutputLimit { partial, .. }) => (*partial, Some(Cause::OutputLimit)),
        Err(error) => return Err(error.into()),
    };
    print_json(&result::of_output(vm.id(), &output, cause));
    let code = cause.map_or(exit_code::OUR_OWN, of_cause);
    Ok((code, ended(&output)))
}

fn ended(output: &Output) -> Ended {
    match output.exit {
        Some(_) => Ended::Yes,
        None => Ended::No,
    }
}

/// Connects the command's outputs to ours.
async fn copy(
    events: ExecStream,
    time: Option<Duration>,
    max_output: Option<u64>,
) -> anyhow::Result<(u8, Ended)> {
    let copying = stream::copy(events, max_output);
    let end = match time {
        None => copying.await?,
        Some(time) => match timeout(time.saturating_add(GRACE), copying).await {
            Ok(end) => end?,
            Err(_) => {
                say_timed_out(time);
                return Ok((exit_code::TIMED_OUT, Ended::No));
            }
        },
    };
    Ok(match end {
        End::Exited(exit) => {
            explain(&exit, time);
            (of_exit(&exit), Ended::Yes)
        }
        End::TooMuch { output, limit } => {
            let name = output::name(output);
            say(&format!(
                "the command printed more than {limit} bytes to {name}, and was ended"
            ));
            (exit_code::TOO_MUCH_OUTPUT, Ended::No)
        }
        End::Unread => (exit_code::UNREAD, Ended::No),
    })
}

/// An exit code alone does not tell who ended the command.
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
