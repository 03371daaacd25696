//! What people and machines are told of a transfer when it is done.

use std::io::{self, IsTerminal};

use indicatif::HumanBytes;
use serde_json::{Value, json};
use vmcell::{
    files::Pushed,
    tree::{LeftOut, Received},
};

use super::name;
use crate::failure::say;

/// What became of a transfer.
pub(super) struct Summary {
    entries: u64,
    bytes: u64,
    unchanged: u64,
    left_out: u64,
    first_left_out: Vec<LeftOut>,
    lost_xattrs: u64,
    resized: u64,
}

impl Summary {
    /// Says what is not as it was, and on a terminal also how much is.
    pub(super) fn say(&self) {
        self.say_losses();
        if !io::stderr().is_terminal() {
            return;
        }
        let (entries, bytes) = (self.entries, HumanBytes(self.bytes));
        let mut text = format!("{entries} entries, {bytes}");
        if self.unchanged > 0 {
            text += &format!(", {} unchanged", self.unchanged);
        }
        if self.left_out > 0 {
            text += &format!(", {} left out", self.left_out);
        }
        say(&text);
    }

    /// Says what is not as it was.
    pub(super) fn say_losses(&self) {
        for left_out in &self.first_left_out {
            let path = name::shown_bytes(&left_out.path);
            say(&format!("left out {path}: {}", left_out.reason));
        }
        let more = self
            .left_out
            .saturating_sub(self.first_left_out.len() as u64);
        for (count, what) in [
            (more, "more entries were left out"),
            (self.lost_xattrs, "extended attributes were lost"),
            (
                self.resized,
                "files changed meanwhile, and were cut off or filled up",
            ),
        ] {
            if count > 0 {
                say(&format!("{count} {what}"));
            }
        }
    }

    pub(super) fn as_json(&self, vm: &str) -> Value {
        let first_left_out = self.first_left_out.iter().map(|left_out| {
            let mut told = json!({ "reason": left_out.reason });
            name::put_bytes(&mut told, "path", &left_out.path);
            told
        });
        json!({
            "sandbox_id": vm,
            "entries": self.entries,
            "bytes": self.bytes,
            "unchanged": self.unchanged,
            "left_out": self.left_out,
            "first_left_out": first_left_out.collect::<Vec<_>>(),
            "lost_xattrs": self.lost_xattrs,
            "resized": self.resized,
        })
    }
}

impl From<Pushed> for Summary {
    fn from(pushed: Pushed) -> Self {
        Self {
            entries: pushed.entries,
            bytes: pushed.bytes,
            unchanged: pushed.unchanged,
            left_out: pushed.left_out,
            first_left_out: pushed.first_left_out,
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
            left_out: received.left_out,
            first_left_out: received.first_left_out,
            lost_xattrs: received.lost_xattrs,
            resized: received.resized,
        }
    }
}
