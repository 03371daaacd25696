//! Copies a command's output events to our outputs.

use bytes::Bytes;
use vmcell::{Error, ExecEvent, ExecStream, Exit, OutputKind};

use crate::output::{Outputs, Written};

/// Why copying ended.
pub(crate) enum CopyEnd {
    /// The command exited.
    Exited(Exit),
    /// The command exceeded its output limit.
    OutputLimit { output: OutputKind, limit: u64 },
    /// The reader of our output is gone.
    ReaderGone,
}

/// Copies what a command prints to our outputs until it exits. Kills it if it
/// prints more than `limit` bytes to one of its outputs.
pub(crate) async fn copy(
    mut events: ExecStream,
    outputs: Outputs,
    limit: Option<u64>,
) -> anyhow::Result<CopyEnd> {
    let end = copy_events(&mut events, &outputs, limit).await;
    // Kills the command, which must not go on while we wait for a reader.
    drop(events);
    // Print what came before a failure.
    let written = outputs.finish().await?;
    match written {
        Written::All => Ok(end?),
        Written::ReaderGone => Ok(CopyEnd::ReaderGone),
    }
}

async fn copy_events(
    events: &mut ExecStream,
    outputs: &Outputs,
    limit: Option<u64>,
) -> Result<CopyEnd, Error> {
    let mut budgets = Budgets {
        stdout: limit,
        stderr: limit,
    };
    while let Some(mut event) = events.next().await? {
        let exceeded = match &mut event {
            ExecEvent::Exited(exit) => return Ok(CopyEnd::Exited(*exit)),
            ExecEvent::Stdout(bytes) => spend(&mut budgets.stdout, bytes, OutputKind::Stdout),
            ExecEvent::Stderr(bytes) => spend(&mut budgets.stderr, bytes, OutputKind::Stderr),
            _ => None,
        };
        if !outputs.write(event).await {
            return Ok(CopyEnd::ReaderGone);
        }
        if let (Some(output), Some(limit)) = (exceeded, limit) {
            return Ok(CopyEnd::OutputLimit { output, limit });
        }
    }
    // A stream always ends with the command's exit or an error.
    Err(Error::Transport("the exit is missing".to_owned()))
}

/// How many bytes may still be printed. `None`: no limit.
struct Budgets {
    stdout: Option<u64>,
    stderr: Option<u64>,
}

/// Truncates bytes to the budget. Returns the output if anything was cut off.
fn spend(budget: &mut Option<u64>, bytes: &mut Bytes, output: OutputKind) -> Option<OutputKind> {
    let left = budget.as_mut()?;
    let count = bytes.len() as u64;
    if count <= *left {
        *left -= count;
        return None;
    }
    // It is less than a length, so it fits.
    bytes.truncate(*left as usize);
    Some(output)
}
