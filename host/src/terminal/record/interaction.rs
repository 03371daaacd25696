use std::time::SystemTime;

use serde::Serialize;

use super::{
    super::{KeyPress, Prompt, Reply, Status, TerminalSize},
    session::{columns_and_rows, exit_record, prompt_name, status_name, unix_milliseconds},
};
use crate::Exit;

/// Something that was done, or that came of it: a line of `interaction.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interaction {
    /// When it happened.
    time_ms: u64,
    #[serde(flatten)]
    kind: InteractionKind,
}

/// What is not told here is not written down: of a password only that there
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
        /// None: a prompt.
        pattern: Option<String>,
    },
    /// The bytes from start to end of the transcript are the answer.
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
        #[serde(serialize_with = "exit_record")]
        exit: Exit,
    },
}

/// What was typed. Of long texts only the beginning is written down.
#[derive(Clone, Debug, Serialize)]
struct Text {
    text: String,
    /// How long all of it was.
    bytes: usize,
}

/// In bytes.
const MAX_TEXT: usize = 4096;

impl Interaction {
    /// A line was typed.
    pub(crate) fn run(line: &str) -> Self {
        Self::now(InteractionKind::Run(Text::new(line.as_bytes())))
    }

    /// Something was typed.
    pub(crate) fn input(bytes: &[u8]) -> Self {
        Self::now(InteractionKind::Input(Text::new(bytes)))
    }

    /// A key was pressed, also one with control.
    pub(crate) fn key(key: &KeyPress) -> Self {
        let key = key.to_string();
        Self::now(InteractionKind::Key { key })
    }

    /// Something was pasted.
    pub(crate) fn paste(text: &str) -> Self {
        Self::now(InteractionKind::Paste(Text::new(text.as_bytes())))
    }

    /// A password was typed.
    pub(crate) fn password() -> Self {
        Self::now(InteractionKind::Password { password: true })
    }

    /// A signal was sent.
    pub(crate) fn signal(signal: u8) -> Self {
        Self::now(InteractionKind::Signal { signal })
    }

    /// The terminal got another size.
    pub(crate) fn resize(size: TerminalSize) -> Self {
        Self::now(InteractionKind::Resize { size })
    }

    /// Somebody waits for a pattern, or for a prompt.
    pub(crate) fn expect(pattern: Option<&str>) -> Self {
        let pattern = pattern.map(|pattern| Text::new(pattern.as_bytes()).text);
        Self::now(InteractionKind::Expect { pattern })
    }

    /// What came of it.
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
