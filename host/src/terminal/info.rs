use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use super::{Prompt, Status, Terminal, TerminalSize, look::Look};
use crate::{
    error::Error,
    process::{Exit, ProcessId},
};

/// What is known of a terminal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TerminalInfo {
    /// The number that the agent gave it.
    pub id: ProcessId,
    /// Its tag.
    pub tag: String,
    /// The kernel's number of the program that it was opened with.
    pub pid: u32,
    /// The beginning of that program's arguments, safe to print.
    pub command: Vec<String>,
    /// How large it is.
    pub size: TerminalSize,
    /// The kernel's number of who reads what is typed.
    pub foreground_pid: Option<u32>,
    /// What the kernel calls it, safe to print.
    pub foreground_command: Option<String>,
    /// Where that is. It is the guest's word: escape it before printing.
    pub current_dir: Option<PathBuf>,
    /// When it was opened.
    pub started: SystemTime,
    /// When this program last heard of it.
    pub last_output: Option<SystemTime>,
    /// When this program last typed on it.
    pub last_input: Option<SystemTime>,
    /// What it seems to wait for.
    pub status: Status,
    /// What sort of prompt is there.
    pub prompt: Prompt,
    /// How it ended, if it did.
    pub exit: Option<Exit>,
    /// Where what happens is written down.
    pub records: Option<PathBuf>,
    /// Why it is not written down any more.
    pub records_failure: Option<String>,
}

impl TerminalInfo {
    pub(super) async fn ask(terminal: &Terminal) -> Result<Self, Error> {
        let core = terminal.core();
        let process = core.vm.processes().info(core.id).await?;
        let look = Look::at(&core.vm, core.id).await?;
        let (status, prompt) = terminal.infer(look.as_ref());
        let foreground = look.and_then(|look| look.foreground);
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
