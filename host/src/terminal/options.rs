use std::{ffi::OsString, path::PathBuf, time::Duration};

use regex::{Regex, RegexBuilder};

use super::TerminalSize;
use crate::{error::Error, process::Command};

/// What a new terminal is, and how this program follows it.
///
/// ```
/// use vmcell::{Command, terminal::{TerminalOptions, TerminalSize}};
///
/// // A shell: bash, or sh where there is no bash.
/// let shell = TerminalOptions::new().tag("build").current_dir("/workspace");
/// // Any program.
/// let python = TerminalOptions::command(Command::new("python3").user("cell"))
///     .size(TerminalSize::new(80, 24)?);
/// # let _ = (shell, python);
/// # Ok::<(), vmcell::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct TerminalOptions {
    pub(super) command: Command,
    pub(super) size: TerminalSize,
    pub(super) unread: Unread,
    pub(super) quiet: Duration,
    pub(super) timeout: Duration,
    pub(super) transcript: usize,
    pub(super) scrollback: usize,
    pub(super) record: Option<PathBuf>,
    pub(super) prompt: Option<Regex>,
    pub(super) view_only: bool,
}

/// What becomes of what a terminal prints while nobody is attached to it.
///
/// While somebody is, its program waits for the fastest of them, as on any
/// terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unread {
    /// The guest keeps the last of it and drops the rest; the program goes on.
    #[default]
    Dropped,
    /// Nothing is ever dropped: the program waits when the guest's room is
    /// full.
    Kept,
}

/// bash where there is one, with none of its files read, so that its prompt is
/// its own.
const SHELL: &str = "command -v bash >/dev/null 2>&1 && exec bash --noprofile --norc; exec sh";

impl TerminalOptions {
    /// What `TERM` is if the command does not set it.
    pub const TERM: &str = "xterm-256color";

    /// How long the terminal must be silent for an operation to be over, if
    /// not set.
    pub const DEFAULT_QUIET: Duration = Duration::from_secs(1);

    /// How long an operation waits at most, if not set.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// How many bytes of output are kept here, if not set.
    pub const DEFAULT_TRANSCRIPT: usize = 1024 * 1024;

    /// How many lines that left the screen are kept, if not set.
    pub const DEFAULT_SCROLLBACK: usize = 1000;

    /// A shell.
    pub fn new() -> Self {
        Self::command(Command::shell(SHELL))
    }

    /// Any program. What the command says about input and collected output
    /// means nothing here.
    pub fn command(command: Command) -> Self {
        Self {
            command: command.env_default("TERM", Self::TERM),
            size: TerminalSize::default(),
            unread: Unread::Dropped,
            quiet: Self::DEFAULT_QUIET,
            timeout: Self::DEFAULT_TIMEOUT,
            transcript: Self::DEFAULT_TRANSCRIPT,
            scrollback: Self::DEFAULT_SCROLLBACK,
            record: None,
            prompt: None,
            view_only: false,
        }
    }

    /// Names the terminal: see [`Command::tag`].
    pub fn tag(self, tag: impl Into<String>) -> Self {
        self.change(|command| command.tag(tag))
    }

    /// Where its program begins: see [`Command::current_dir`].
    pub fn current_dir(self, directory: impl Into<OsString>) -> Self {
        self.change(|command| command.current_dir(directory))
    }

    /// Sets a variable of its environment: see [`Command::env`].
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.change(|command| command.env(name, value))
    }

    /// Who it runs as: see [`Command::user`].
    pub fn user(self, user: impl Into<String>) -> Self {
        self.change(|command| command.user(user))
    }

    /// How large it is; 120 by 30 if not set.
    pub fn size(mut self, size: TerminalSize) -> Self {
        self.size = size;
        self
    }

    /// What becomes of output while nobody is attached.
    pub fn unread(mut self, unread: Unread) -> Self {
        self.unread = unread;
        self
    }

    /// How long it must be silent for an operation to be over.
    pub fn quiet(mut self, silence: Duration) -> Self {
        self.quiet = silence;
        self
    }

    /// How long an operation waits at most.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes of output are kept here, for reading by cursor and for a
    /// [recording](super::Terminal::asciicast).
    pub fn transcript_limit(mut self, bytes: usize) -> Self {
        self.transcript = bytes;
        self
    }

    /// How many lines that left the screen are kept.
    pub fn scrollback_limit(mut self, lines: usize) -> Self {
        self.scrollback = lines;
        self
    }

    /// Writes down what happens, in this folder, which is made and outlives
    /// the session: `transcript.log` (every byte that was printed),
    /// `interaction.jsonl` (one JSON object a line) and `session.json`. For
    /// passwords see [`send_password`](super::Terminal::send_password).
    ///
    /// The program in the guest waits if the host's disk is slow, so nothing
    /// is left out.
    pub fn record(mut self, folder: impl Into<PathBuf>) -> Self {
        self.record = Some(folder.into());
        self
    }

    /// How the prompt is recognised, where the library would not: a regular
    /// expression that the cursor's row matches up to the cursor.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no regular expression.
    pub fn prompt(mut self, pattern: &str) -> Result<Self, Error> {
        self.prompt = Some(expression(pattern)?);
        Ok(self)
    }

    /// Only looks: what is typed goes nowhere, and what the program asks its
    /// terminal is left to others to answer. For
    /// [attaching](super::Terminals::attach_with).
    pub fn view_only(mut self) -> Self {
        self.view_only = true;
        self
    }

    fn change(self, change: impl FnOnce(Command) -> Command) -> Self {
        Self {
            command: change(self.command),
            ..self
        }
    }
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A regular expression that can neither take for ever nor fill the memory.
pub(super) fn expression(pattern: &str) -> Result<Regex, Error> {
    const MAX_SIZE: usize = 1 << 20;
    RegexBuilder::new(pattern)
        .size_limit(MAX_SIZE)
        .multi_line(true)
        .build()
        .map_err(|error| Error::Invalid(error.to_string()))
}
