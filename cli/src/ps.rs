//! `vmcell ps`: lists VMs, or the processes of one.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use serde_json::json;
use vmcell::{ProcessInfo, Vm, VmDetails};
use vmcell_cli::show::{self, Table};

use crate::{arguments::PsArguments, failure::print_json, runtime::block_on, target};

pub(crate) fn ps(arguments: &PsArguments) -> anyhow::Result<u8> {
    block_on(async {
        match &arguments.id {
            None => list_vms(arguments.json).await,
            Some(id) => list_processes(id, arguments.json).await,
        }
    })?;
    Ok(0)
}

async fn list_vms(json: bool) -> anyhow::Result<()> {
    let vms = Vm::list().await?;
    if json {
        print_json(&json!({ "vms": vms }));
        return Ok(());
    }
    let mut table = Table::new(["ID", "OWNER", "STATE", "UPTIME", "VCPUS", "MEMORY", "IMAGE"]);
    for vm in vms {
        let detail = |text: fn(&VmDetails) -> String| vm.details().map_or(UNKNOWN.to_owned(), text);
        table.add([
            vm.id.clone(),
            vm.owner_pid
                .map_or(UNKNOWN.to_owned(), |pid| pid.to_string()),
            vm.status.name().replace('-', " "),
            detail(|details| human_readable(uptime(details))),
            detail(|details| details.vcpus.to_string()),
            detail(|details| format!("{} MiB", details.memory_mib)),
            detail(|details| details.image.display().to_string()),
        ]);
    }
    table.print_to_stdout()
}

async fn list_processes(id: &str, json: bool) -> anyhow::Result<()> {
    let vm = target::attach(id).await?;
    let processes = vm.processes().list().await?;
    let terminals = vm.terminals().list().await?;
    let terminals: HashSet<_> = terminals.iter().map(|terminal| terminal.id.0).collect();
    let is_terminal = |process: &ProcessInfo| terminals.contains(&process.id.0);
    if json {
        let list = processes.iter().map(|process| {
            let mut object = show::json::value(process);
            object["terminal"] = is_terminal(process).into();
            object
        });
        let list: Vec<_> = list.collect();
        print_json(&json!({ "sandbox_id": id, "processes": list }));
        return Ok(());
    }
    let mut table = Table::new([
        "ID", "PID", "TAG", "TTY", "STATE", "AGE", "STDOUT", "STDERR", "UID", "COMMAND",
    ]);
    for process in processes {
        table.add([
            process.id.to_string(),
            process.pid.to_string(),
            process.tag.clone(),
            if is_terminal(&process) { "yes" } else { "no" }.to_owned(),
            state(&process),
            human_readable(process.age),
            process.stdout.end.to_string(),
            process.stderr.end.to_string(),
            process.uid.to_string(),
            truncated(&process.command.join(" ")),
        ]);
    }
    table.print_to_stdout()
}

/// Shown for what the VM's owner has not reported.
const UNKNOWN: &str = "-";

fn state(process: &ProcessInfo) -> String {
    match &process.exit {
        None => "running".to_owned(),
        Some(exit) => format!("{}{}", exit.cause, left_behind(process)),
    }
}

/// Returns the first few processes that a command left behind, for a table
/// cell.
fn left_behind(process: &ProcessInfo) -> String {
    const MAX_SHOWN: usize = 3;
    let shown = process.left.iter().take(MAX_SHOWN);
    let mut shown: Vec<_> = shown
        .map(|left| format!("{}:{}", left.pid, left.name))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    if process.left_more || process.left.len() > MAX_SHOWN {
        shown.push("…".to_owned());
    }
    format!(", left {}", shown.join(" "))
}

pub(crate) fn uptime(vm: &VmDetails) -> Duration {
    SystemTime::now()
        .duration_since(vm.started)
        .unwrap_or_default()
}

/// Formats a duration in its two largest units.
pub(crate) fn human_readable(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// Truncates a command so that it fits into a table.
fn truncated(command: &str) -> String {
    const MAX_LENGTH: usize = 60;
    match command.char_indices().nth(MAX_LENGTH) {
        None => command.to_owned(),
        Some((end, _)) => format!("{}…", &command[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m 0s"),
            (3_599, "59m 59s"),
            (7_260, "2h 1m"),
            (200_000, "2d 7h"),
        ] {
            assert_eq!(human_readable(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn long_commands_are_cut_between_characters() {
        assert_eq!(truncated("echo"), "echo");
        let cut = truncated(&"ä".repeat(61));
        assert_eq!(cut, format!("{}…", "ä".repeat(60)));
    }
}
