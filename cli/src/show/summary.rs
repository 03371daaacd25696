use std::io::{self, IsTerminal};

use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Value, json};
use vmcell::{
    files::Pushed,
    tree::{Received, SkippedEntry},
};

use super::name;

/// What a transfer has copied, and what it has not.
#[derive(Debug, Serialize)]
pub struct Summary {
    entries: u64,
    bytes: u64,
    unchanged: u64,
    left_out: u64,
    first_left_out: Vec<SkippedEntry>,
    lost_xattrs: u64,
    resized: u64,
}

impl Summary {
    /// Returns the warnings, and the totals if standard error is a terminal.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.warnings();
        if io::stderr().is_terminal() {
            lines.push(self.totals());
        }
        lines
    }

    /// Returns a message for everything that was not copied exactly.
    pub fn warnings(&self) -> Vec<String> {
        let left_out = self.first_left_out.iter().map(|left_out| {
            let path = name::printable_bytes(&left_out.path);
            format!("left out {path}: {}", left_out.reason)
        });
        let mut lines: Vec<_> = left_out.collect();
        let not_listed = self
            .left_out
            .saturating_sub(self.first_left_out.len() as u64);
        for (count, one, many) in [
            (
                not_listed,
                "more entry was left out",
                "more entries were left out",
            ),
            (
                self.lost_xattrs,
                "extended attribute was lost",
                "extended attributes were lost",
            ),
            (
                self.resized,
                "file changed while being copied, and was truncated or padded",
                "files changed while being copied, and were truncated or padded",
            ),
        ] {
            match count {
                0 => {}
                1 => lines.push(format!("1 {one}")),
                _ => lines.push(format!("{count} {many}")),
            }
        }
        lines
    }

    /// Returns how much was copied.
    fn totals(&self) -> String {
        let (entries, bytes) = (self.entries, HumanBytes(self.bytes));
        let noun = if entries == 1 { "entry" } else { "entries" };
        let mut text = format!("{entries} {noun}, {bytes}");
        if self.unchanged > 0 {
            text += &format!(", {} unchanged", self.unchanged);
        }
        if self.left_out > 0 {
            text += &format!(", {} left out", self.left_out);
        }
        text
    }

    /// Returns the summary as JSON.
    pub fn as_json(&self) -> Value {
        json!(self)
    }
}

impl From<Pushed> for Summary {
    fn from(pushed: Pushed) -> Self {
        Self {
            entries: pushed.entries,
            bytes: pushed.bytes,
            unchanged: pushed.unchanged,
            left_out: pushed.skipped,
            first_left_out: pushed.first_skipped,
            lost_xattrs: pushed.lost_xattrs,
            resized: 0,
        }
    }
}

impl From<Received> for Summary {
    fn from(received: Received) -> Self {
        Self {
            entries: received.entries,
            bytes: received.bytes,
            unchanged: 0,
            left_out: received.skipped,
            first_left_out: received.first_skipped,
            lost_xattrs: received.lost_xattrs,
            resized: received.resized,
        }
    }
}
