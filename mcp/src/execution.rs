//! Runs a command, and returns a bounded part of what it prints.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use vmcell::{Cause, Command, Error, ExecStream, Output, OverflowPolicy, Truncation};

use crate::{call::Call, failure::Failure};

/// How much of each output is returned, unless the caller says.
pub(crate) const DEFAULT_MAX_OUTPUT: usize = 64 * 1024;

/// The most that is returned of each output.
const MAX_OUTPUT: usize = 4 * 1024 * 1024;

/// The longest time that a command may be given.
const MAX_SECONDS: f64 = 24.0 * 3600.0;

/// How a command ended, and what it printed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Execution {
    /// The exit code; null if it was killed.
    exit_code: Option<u8>,
    /// code, signal, timeout, out-of-memory, killed or vm-ended.
    cause: &'static str,
    timed_out: bool,
    stdout: String,
    stderr: String,
    /// How many bytes it printed in all.
    stdout_bytes: u64,
    stderr_bytes: u64,
    /// How many of them were left out of the middle.
    stdout_omitted_bytes: u64,
    stderr_omitted_bytes: u64,
    /// How to read what was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_on: Option<&'static str>,
    duration_seconds: f64,
}

/// What to do about output that was left out.
const READ_ON: &str = "run it again with its output in a file, and read that with \
                       workspace_file_read, or with a larger max_output_bytes";

/// The limits of a command: its time, and how much of each output is returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    timeout: Duration,
    max_output: usize,
}

impl Limits {
    /// Checks what the caller has asked for.
    pub(crate) fn new(timeout_seconds: f64, max_output_bytes: usize) -> Result<Self, Failure> {
        if max_output_bytes > MAX_OUTPUT {
            return Err(Failure::invalid(format!(
                "max_output_bytes: {max_output_bytes} is more than {MAX_OUTPUT}: redirect the \
                 output to a file, and read that in parts"
            )));
        }
        Ok(Self {
            timeout: seconds("timeout_seconds", timeout_seconds)?,
            max_output: max_output_bytes,
        })
    }

    pub(crate) fn apply_to(self, command: Command) -> Command {
        command
            .timeout(self.timeout)
            .max_output(self.max_output)
            .on_overflow(OverflowPolicy::HeadAndTail)
    }
}

/// Returns a time that the caller has given in seconds.
pub(crate) fn seconds(argument: &str, seconds: f64) -> Result<Duration, Failure> {
    match seconds > 0.0 && seconds <= MAX_SECONDS {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(Failure::invalid(format!(
            "{argument}: {seconds} is not above 0 and at most {MAX_SECONDS}"
        ))),
    }
}

/// Waits for the end of a command with these limits.
pub(crate) async fn wait(
    call: &Call,
    stream: ExecStream,
    limits: Limits,
) -> Result<Execution, Failure> {
    call.progress.set("running the command");
    call.progress.set_limit(limits.timeout);
    Ok(match call.output(stream).await {
        Ok(output) => Execution::new(&output, false),
        Err(Error::ExecTimeout { partial, .. }) => Execution::new(&partial, true),
        Err(error) => return Err(error.into()),
    })
}

impl Execution {
    fn new(output: &Output, timed_out: bool) -> Self {
        let cause = match output.exit {
            Some(exit) if !timed_out => exit.cause,
            _ => Cause::Timeout,
        };
        let omitted = |gap: Option<Truncation>| gap.map_or(0, |gap| gap.bytes);
        let stdout_omitted_bytes = omitted(output.stdout_truncation);
        let stderr_omitted_bytes = omitted(output.stderr_truncation);
        let is_cut = stdout_omitted_bytes + stderr_omitted_bytes > 0;
        Self {
            exit_code: output.code().filter(|_| !timed_out),
            cause: cause.name(),
            timed_out,
            stdout: output.stdout_text(),
            stderr: output.stderr_text(),
            stdout_bytes: output.stdout.len() as u64 + stdout_omitted_bytes,
            stderr_bytes: output.stderr.len() as u64 + stderr_omitted_bytes,
            stdout_omitted_bytes,
            stderr_omitted_bytes,
            read_on: is_cut.then_some(READ_ON),
            duration_seconds: output.exit.map_or(0.0, |exit| exit.wall_time.as_secs_f64()),
        }
    }
}
