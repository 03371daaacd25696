use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use super::{Prompt, Status, Terminal, TerminalSize, status::Inference, tty_state::TtyState};
use crate::{
    error::Error,
    process::{Exit, ProcessId},
};

/// The state of a terminal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TerminalInfo {
    /// The id that the agent assigned to it.
    pub id: ProcessId,
    /// Its tag.
    pub tag: String,
    /// The PID, in the guest, of the program that it was opened with.
    pub pid: u32,
    /// The beginning of that program's arguments, safe to print.
    pub command: Vec<String>,
    /// Its size.
    pub size: TerminalSize,
    /// The PID of the process that reads the input.
    pub foreground_pid: Option<u32>,
    /// That process's name in the kernel, safe to print.
    pub foreground_command: Option<String>,
    /// That process's working directory. It comes from the guest: escape it
    /// before printing.
    pub current_dir: Option<PathBuf>,
    /// When it was opened.
    pub started: SystemTime,
    /// When this program last read output of it.
    pub last_output: Option<SystemTime>,
    /// When this program last typed on it.
    pub last_input: Option<SystemTime>,
    /// What it seems to wait for.
    pub status: Status,
    /// The kind of prompt at the cursor.
    pub prompt: Prompt,
    /// How its program ended, or `None` while it runs.
    pub exit: Option<Exit>,
    /// The folder of its records.
    pub records: Option<PathBuf>,
    /// Why recording has stopped, if it has.
    pub records_failure: Option<String>,
}

impl TerminalInfo {
    pub(super) async fn query(terminal: &Terminal) -> Result<Self, Error> {
        let core = terminal.core();
        let process = core.vm.processes().info(core.id).await?;
        let tty = TtyState::query(&core.vm, core.id).await?;
        let Inference { status, prompt, .. } = terminal.infer(tty.as_ref());
        let foreground = tty.and_then(|tty| tty.foreground);
        let now = SystemTime::now();
        let ago = |age: Duration| now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let model = core.shared.model();
        Ok(Self {
            id: core.id,
            tag: process.tag,
            pid: core.pid,
            command: process.command,
            size: model.size,
            foreground_pid: foreground.as_ref().map(|foreground| foreground.pid),
            foreground_command: foreground
                .as_ref()
                .map(|foreground| foreground.command.clone()),
            current_dir: foreground.and_then(|foreground| foreground.cwd),
            started: ago(process.age),
            last_output: model.last_output.map(|at| ago(at.elapsed())),
            last_input: model.last_input.map(|at| ago(at.elapsed())),
            status,
            prompt,
            exit: process.exit,
            records: terminal.records(),
            records_failure: core
                .shared
                .records
                .as_ref()
                .and_then(|records| records.failure()),
        })
    }
}
