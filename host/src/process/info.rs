use std::time::Duration;

use super::{Exit, ProcessId};
use crate::{printable::printable, session::Listed};

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

impl ProcessInfo {
    /// About how many bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        // Small allocations take more than they hold.
        const ALLOCATION: usize = 16;
        let words = self.command.iter();
        let words = words.map(|word| size_of::<String>() + word.len() + ALLOCATION);
        size_of::<Self>() + self.tag.len() + words.sum::<usize>()
    }

    pub(super) fn from_guest(listed: Listed) -> Self {
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
        }
    }
}
