use std::time::Duration;

use vmcell_wire::{BufferedRange, Event, ProcessEntry, ProcessMode};

use super::{Exit, ProcessId};
use crate::printable;

/// A process as [`Processes::list`](super::Processes::list) reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The id that the agent assigned to it.
    pub id: ProcessId,
    /// Its pid in the guest.
    pub pid: u32,
    /// Its tag.
    pub tag: String,
    /// The beginning of its arguments, safe to print.
    pub command: Vec<String>,
    /// The user id that it runs as.
    pub uid: u32,
    /// Whether it keeps running when nobody is attached.
    pub background: bool,
    /// How long ago it was started.
    pub age: Duration,
    /// The part of its standard output that is kept.
    pub stdout: KeptOutput,
    /// The part of its standard error that is kept.
    pub stderr: KeptOutput,
    /// How it ended, if it did.
    pub exit: Option<Exit>,
    /// Descendants that still run after it has exited, at most 16. A foreground
    /// command is listed as long as there are any.
    pub left: Vec<LeftProcess>,
    /// Whether more descendants still run than [`left`](Self::left) lists.
    pub left_more: bool,
}

/// A process that outlived the command that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LeftProcess {
    /// Its pid in the guest.
    pub pid: u32,
    /// Its process name, safe to print.
    pub name: String,
}

/// The range of bytes of an output that can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct KeptOutput {
    /// The offset of the oldest byte.
    #[cfg_attr(feature = "serde", serde(rename = "kept_from"))]
    pub start: u64,
    /// The offset after the newest byte, which is the number of bytes ever
    /// written.
    #[cfg_attr(feature = "serde", serde(rename = "bytes"))]
    pub end: u64,
}

impl LeftProcess {
    fn from_wire((pid, name): (u32, &[u8])) -> Self {
        let name = printable(name);
        Self {
            pid,
            name: name.into_owned(),
        }
    }
}

impl ProcessInfo {
    /// Returns roughly how many bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        // The allocator's overhead for a small allocation.
        const ALLOCATION: usize = 16;
        let words = self.command.iter();
        let words = words.map(|word| size_of::<String>() + word.len() + ALLOCATION);
        size_of::<Self>() + self.tag.len() + words.sum::<usize>()
    }

    /// Returns the process of an entry of a list; `None` for other events.
    pub(super) fn from_wire(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Listed(entry) => Some(Self::from_entry(entry)),
            Event::ListedTree(tree) => Some(Self {
                left: tree.descendants().map(LeftProcess::from_wire).collect(),
                left_more: tree.more,
                ..Self::from_entry(&tree.entry)
            }),
            _ => None,
        }
    }

    fn from_entry(entry: &ProcessEntry<'_>) -> Self {
        let words = entry.argv.iter();
        Self {
            id: ProcessId(entry.id),
            pid: entry.pid,
            tag: printable(entry.tag.as_bytes()).into_owned(),
            command: words
                .map(|word| printable(word.to_bytes()).into_owned())
                .collect(),
            uid: entry.uid,
            background: entry.mode == ProcessMode::Background,
            age: Duration::from_millis(entry.age_ms),
            stdout: KeptOutput::from_wire(entry.stdout),
            stderr: KeptOutput::from_wire(entry.stderr),
            exit: entry.exit.as_ref().map(Exit::from_wire),
            left: Vec::new(),
            left_more: false,
        }
    }
}

impl KeptOutput {
    pub(crate) fn from_wire(range: BufferedRange) -> Self {
        Self {
            start: range.start,
            end: range.end,
        }
    }
}
