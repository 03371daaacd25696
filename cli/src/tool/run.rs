//! `vmcell tool run`: runs a request.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
};

use anyhow::Context as _;
use vmcell::tool::{Tool, ToolAnswer, ToolFailure, ToolResult};
use vmcell_cli::signals::Signals;

use super::{arguments::RunArguments, policy};
use crate::{
    environment,
    exit_code::{self, TOOL_FAILED},
    failure::print_json,
    runtime::block_on,
};

pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<u8> {
    let policy = policy::read(&arguments.policy)?;
    // One more byte, so that the tool refuses and records what is too long.
    let limit = policy.limits.request_bytes().saturating_add(1);
    let request = match &arguments.file {
        Some(path) => {
            let file = File::open(path);
            read(file, limit).with_context(|| format!("cannot read {}", path.display()))?
        }
        None => read(Ok(io::stdin()), limit).context("cannot read standard input")?,
    };
    let tool = Tool::builder(policy).environments(|name| {
        environment::image(OsStr::new(name)).map_err(|error| format!("{error:#}"))
    });
    let tool = tool.build()?;
    block_on(async {
        let mut signals = Signals::all()?;
        // Whoever interrupts it drops the call, which ends the VM.
        let outcome = tokio::select! {
            outcome = tool.run_json(&arguments.caller, &request) => outcome,
            code = signals.next() => return Ok(code),
        };
        print_json(ToolAnswer::new(&outcome).as_json());
        Ok(code(&outcome))
    })
}

fn read(input: io::Result<impl Read>, limit: u64) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    input?.take(limit).read_to_end(&mut request)?;
    Ok(request)
}

/// Returns the exit code: that of the command if it ran and all else was in order.
fn code(outcome: &Result<ToolResult, ToolFailure>) -> u8 {
    match outcome {
        Ok(_) => 0,
        Err(ToolFailure::TimedOut { .. }) => exit_code::TIMED_OUT,
        Err(ToolFailure::GuestCommand { result, .. }) => match result.cause {
            Some(cause) => exit_code::of_cause(cause),
            None => exit_code::NOT_STARTED,
        },
        Err(_) => TOOL_FAILED,
    }
}
