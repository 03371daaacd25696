//! Runs a command, and collects a bounded part of what it prints.

use std::{collections::VecDeque, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, interval_at, timeout_at};
use vmcell::{Cause, ExecEvent, ExecStream, Exit, OutputKind};

use crate::{call::Call, failure::Failure};

/// How much of each output is returned, unless the caller says.
pub(crate) const DEFAULT_MAX_OUTPUT: usize = 64 * 1024;

/// The most that is returned of each output.
const MAX_OUTPUT: usize = 4 * 1024 * 1024;

/// How long after its timeout a command may still report its end: the guest ends it.
const GRACE: Duration = Duration::from_secs(5);

/// How often the progress is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// How a command ended, and what it printed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Execution {
    /// The exit code; null if it was killed.
    exit_code: Option<u8>,
    /// exited, signal, timeout, oom-killed, ...
    cause: String,
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

/// Checks how much of an output is returned.
pub(crate) fn max_output(bytes: usize) -> Result<usize, Failure> {
    match bytes {
        0..=MAX_OUTPUT => Ok(bytes),
        _ => Err(Failure::invalid(format!(
            "max_output_bytes: {bytes} is more than {MAX_OUTPUT}: redirect the output to a file, \
             and read that in parts"
        ))),
    }
}

/// Waits for the end of a command, and reports that it runs.
pub(crate) async fn wait(
    call: &Call,
    mut stream: ExecStream,
    timeout: Duration,
    max_output: usize,
) -> Result<Execution, Failure> {
    let began = Instant::now();
    let mut stdout = Kept::new(max_output);
    let mut stderr = Kept::new(max_output);
    let mut reports = interval_at(began + REPORT_INTERVAL, REPORT_INTERVAL);
    let exit = loop {
        let event = tokio::select! {
            biased;
            event = timeout_at(began + timeout + GRACE, stream.next()) => event,
            _ = reports.tick(), if call.is_watched() => {
                let seconds = began.elapsed().as_secs_f64();
                let printed = stdout.total + stderr.total;
                let message = format!("running for {seconds:.0} s, {printed} bytes printed");
                call.report(seconds, Some(timeout.as_secs_f64()), message).await;
                continue;
            }
        };
        // Dropping the stream kills the command.
        let Ok(event) = event else {
            break None;
        };
        match event? {
            Some(ExecEvent::Stdout(bytes)) => stdout.add(&bytes),
            Some(ExecEvent::Stderr(bytes)) => stderr.add(&bytes),
            Some(ExecEvent::Gap { output, bytes }) => match output {
                OutputKind::Stdout => stdout.gap(bytes),
                OutputKind::Stderr => stderr.gap(bytes),
            },
            Some(ExecEvent::Exited(exit)) => break Some(exit),
            Some(_) => {}
            None => break None,
        }
    };
    Ok(Execution::new(exit, stdout, stderr, began.elapsed()))
}

impl Execution {
    fn new(exit: Option<Exit>, stdout: Kept, stderr: Kept, elapsed: Duration) -> Self {
        let cause = exit.map_or(Cause::Timeout, |exit| exit.cause);
        let is_cut = stdout.omitted + stderr.omitted > 0;
        Self {
            exit_code: exit.and_then(|exit| exit.code()),
            cause: cause.name().to_owned(),
            timed_out: cause == Cause::Timeout,
            stdout_bytes: stdout.total,
            stderr_bytes: stderr.total,
            stdout_omitted_bytes: stdout.omitted,
            stderr_omitted_bytes: stderr.omitted,
            stdout: stdout.into_text(),
            stderr: stderr.into_text(),
            read_on: is_cut.then_some(READ_ON),
            duration_seconds: exit.map_or(elapsed, |exit| exit.wall_time).as_secs_f64(),
        }
    }
}

/// The beginning and the end of an output.
struct Kept {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
    total: u64,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self {
            half: limit / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            omitted: 0,
            total: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = match self.omitted {
            0 => self.half - self.head.len().min(self.half),
            _ => 0,
        };
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(self.half);
        self.tail.extend(&rest[skipped..]);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.omitted += (skipped + excess) as u64;
    }

    /// Counts bytes that never arrived.
    fn gap(&mut self, bytes: u64) {
        self.total += bytes;
        self.omitted += bytes + self.tail.len() as u64;
        self.tail.clear();
    }

    fn into_text(mut self) -> String {
        if self.omitted > 0 {
            let note = format!("\n[{} bytes were left out]\n", self.omitted);
            self.head.extend_from_slice(note.as_bytes());
        }
        self.head.extend(self.tail);
        String::from_utf8_lossy(&self.head).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_of_an_output_are_kept() {
        for (limit, expected) in [
            (100, "0123456789abcdef"),
            (16, "0123456789abcdef"),
            (8, "0123\n[8 bytes were left out]\ncdef"),
            (0, "\n[16 bytes were left out]\n"),
        ] {
            for size in [1, 3, 16] {
                let mut kept = Kept::new(limit);
                for piece in b"0123456789abcdef".chunks(size) {
                    kept.add(piece);
                }
                assert_eq!(kept.total, 16);
                assert_eq!(kept.into_text(), expected, "{limit}, {size}");
            }
        }
    }
}
