use std::time::SystemTime;

use serde::Serialize;

use super::{
    super::{KeyPress, Prompt, Reply, Status, TerminalSize},
    session::{columns_and_rows, exit_info, prompt_name, status_name, unix_milliseconds},
};
use crate::{Exit, Signal};

/// An operation or its result: a line of `interaction.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interaction {
    /// When it happened.
    time_ms: u64,
    #[serde(flatten)]
    kind: InteractionKind,
}

/// All that is recorded of an operation. Of a password, that is only that there
/// was one.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum InteractionKind {
    Run(Text),
    Input(Text),
    Key {
        key: String,
    },
    Paste(Text),
    Password {
        password: bool,
    },
    Signal {
        signal: u8,
    },
    Resize {
        #[serde(serialize_with = "columns_and_rows")]
        size: TerminalSize,
    },
    Expect {
        /// `None` for a prompt.
        pattern: Option<String>,
    },
    /// The output is that of the transcript from `start` to `end`.
    Reply {
        start: u64,
        end: u64,
        lost: u64,
        timed_out: bool,
        #[serde(serialize_with = "status_name")]
        status: Status,
        #[serde(serialize_with = "prompt_name")]
        prompt: Prompt,
    },
    Exit {
        #[serde(serialize_with = "exit_info")]
        exit: Exit,
    },
}

/// Typed text, truncated if it is long.
#[derive(Clone, Debug, Serialize)]
struct Text {
    text: String,
    /// The length of the whole text.
    bytes: usize,
}

/// The recorded part of a text, in bytes.
const MAX_TEXT: usize = 4096;

impl Interaction {
    /// A line was typed.
    pub(crate) fn run(line: &str) -> Self {
        Self::now(InteractionKind::Run(Text::new(line.as_bytes())))
    }

    /// Text was typed.
    pub(crate) fn input(bytes: &[u8]) -> Self {
        Self::now(InteractionKind::Input(Text::new(bytes)))
    }

    /// A key was pressed, with or without modifiers.
    pub(crate) fn key(key: &KeyPress) -> Self {
        let key = key.to_string();
        Self::now(InteractionKind::Key { key })
    }

    /// Text was pasted.
    pub(crate) fn paste(text: &str) -> Self {
        Self::now(InteractionKind::Paste(Text::new(text.as_bytes())))
    }

    /// A password was typed.
    pub(crate) fn password() -> Self {
        Self::now(InteractionKind::Password { password: true })
    }

    /// A signal was sent.
    pub(crate) fn signal(signal: Signal) -> Self {
        let signal = signal.number();
        Self::now(InteractionKind::Signal { signal })
    }

    /// The terminal was resized.
    pub(crate) fn resize(size: TerminalSize) -> Self {
        Self::now(InteractionKind::Resize { size })
    }

    /// A wait for a pattern or, with `None`, for a prompt.
    pub(crate) fn expect(pattern: Option<&str>) -> Self {
        let pattern = pattern.map(|pattern| Text::new(pattern.as_bytes()).text);
        Self::now(InteractionKind::Expect { pattern })
    }

    /// The result of an operation.
    pub(crate) fn reply(reply: &Reply) -> Self {
        Self::now(InteractionKind::Reply {
            start: reply.start,
            end: reply.end,
            lost: reply.lost,
            timed_out: reply.timed_out,
            status: reply.status,
            prompt: reply.prompt,
        })
    }

    /// The program ended.
    pub(crate) fn exit(exit: Exit) -> Self {
        Self::now(InteractionKind::Exit { exit })
    }

    fn now(kind: InteractionKind) -> Self {
        let time_ms = unix_milliseconds(SystemTime::now());
        Self { time_ms, kind }
    }
}

impl Text {
    fn new(bytes: &[u8]) -> Self {
        let beginning = bytes.get(..MAX_TEXT).unwrap_or(bytes);
        Self {
            text: String::from_utf8_lossy(beginning).into_owned(),
            bytes: bytes.len(),
        }
    }
}
