//! `vmcell workspace logs`: prints what was run in a workspace.

use std::io::{self, Write};

use serde_json::{Value, json};
use vmcell::workspace::{CommandRecord, CommandState, RecordedOutput};
use vmcell_cli::show::SafeStdout;

use super::{find, info::date};
use crate::failure::print_json;

pub(super) async fn logs(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    let history = workspace.history().await?;
    if json {
        let commands: Value = history.iter().map(as_json).collect();
        print_json(&json!({ "workspace_id": workspace.id(), "commands": commands }));
        return Ok(0);
    }
    let mut out = SafeStdout::new();
    let written = history
        .iter()
        .try_for_each(|command| print(command, &mut out));
    out.finish(written)
}

fn print(command: &CommandRecord, out: &mut impl Write) -> io::Result<()> {
    let argv = command.argv.join(" ");
    let began = date(command.began);
    let state = state(command);
    writeln!(out, "[{}] {began} {state}: {argv}", command.number)?;
    for output in [&command.stdout, &command.stderr] {
        out.write_all(output.text.as_bytes())?;
        if !output.text.is_empty() && !output.text.ends_with('\n') {
            writeln!(out)?;
        }
    }
    Ok(())
}

fn state(command: &CommandRecord) -> String {
    match &command.state {
        CommandState::Running => "running".to_owned(),
        CommandState::Ended {
            code: Some(code), ..
        } => format!("exit code {code}"),
        CommandState::Ended { cause, .. } => cause.clone(),
        CommandState::Failed(reason) => format!("failed ({reason})"),
        _ => "interrupted".to_owned(),
    }
}

fn as_json(command: &CommandRecord) -> Value {
    let (state, cause, code, error) = match &command.state {
        CommandState::Running => ("running", None, None, None),
        CommandState::Ended { cause, code } => ("ended", Some(cause), *code, None),
        CommandState::Failed(reason) => ("failed", None, None, Some(reason)),
        _ => ("interrupted", None, None, None),
    };
    json!({
        "number": command.number,
        "command": command.argv,
        "cwd": command.cwd,
        "user": command.user,
        "started_at": date(command.began),
        "ended_at": command.ended.map(date),
        "state": state,
        "cause": cause,
        "exit_code": code,
        "error": error,
        "stdout": output_as_json(&command.stdout),
        "stderr": output_as_json(&command.stderr),
    })
}

fn output_as_json(output: &RecordedOutput) -> Value {
    json!({
        "text": output.text,
        "bytes": output.bytes,
        "sha256": output.sha256,
        "truncated": output.is_cut(),
    })
}
