use std::time::Duration;

use super::{Exit, ProcessId};
use crate::{
    printable,
    session::{LeftProcesses, ListedProcess},
};

/// What is known of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The number that the agent gave it.
    pub id: ProcessId,
    /// The number that the guest's kernel gave it.
    pub pid: u32,
    /// Its tag.
    pub tag: String,
    /// The beginning of its arguments, safe to print.
    pub command: Vec<String>,
    /// Who it runs as.
    pub uid: u32,
    /// Whether it goes on when nobody watches it.
    pub background: bool,
    /// How long ago it was started.
    pub age: Duration,
    /// What is kept of its standard output.
    pub stdout: KeptOutput,
    /// What is kept of its standard error.
    pub stderr: KeptOutput,
    /// How it ended, if it did.
    pub exit: Option<Exit>,
    /// The processes that it left behind when it ended, 16 at most. A command
    /// that did not run in the background is listed as long as there are any.
    pub left: Vec<LeftProcess>,
    /// Whether it left more than [`left`](Self::left) names.
    pub left_more: bool,
}

/// A process that outlived the command that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftProcess {
    /// The number that the guest's kernel gave it.
    pub pid: u32,
    /// What it calls itself, safe to print.
    pub name: String,
}

/// Which bytes of an output can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptOutput {
    /// The offset of the oldest byte.
    pub start: u64,
    /// The offset behind the newest: how many there ever were.
    pub end: u64,
}

impl LeftProcess {
    fn from_guest((pid, name): (u32, &[u8])) -> Self {
        let name = printable(name);
        Self {
            pid,
            name: name.into_owned(),
        }
    }
}

impl ProcessInfo {
    /// About how many bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        // Small allocations take more than they hold.
        const ALLOCATION: usize = 16;
        let words = self.command.iter();
        let words = words.map(|word| size_of::<String>() + word.len() + ALLOCATION);
        size_of::<Self>() + self.tag.len() + words.sum::<usize>()
    }

    pub(super) fn from_guest(listed: ListedProcess) -> Self {
        let kept = |kept: vmcell_wire::Kept| KeptOutput {
            start: kept.start,
            end: kept.end,
        };
        Self {
            id: ProcessId(listed.id),
            pid: listed.pid,
            tag: printable(listed.tag.as_bytes()).into_owned(),
            command: listed
                .argv
                .as_packed()
                .iter()
                .map(|word| printable(word.to_bytes()).into_owned())
                .collect(),
            uid: listed.uid,
            background: listed.lifetime == vmcell_wire::Lifetime::Background,
            age: Duration::from_millis(listed.age_ms),
            stdout: kept(listed.stdout),
            stderr: kept(listed.stderr),
            exit: listed.exit.as_ref().map(Exit::from_wire),
            left_more: listed.left.as_ref().is_some_and(|left| left.more),
            left: listed
                .left
                .iter()
                .flat_map(LeftProcesses::processes)
                .map(LeftProcess::from_guest)
                .collect(),
        }
    }
}
