use std::{ffi::OsString, path::PathBuf, time::Duration};

use regex::{Regex, RegexBuilder};

use super::TerminalSize;
use crate::{error::Error, process::Command, secret::Secret};

/// Options of a new terminal, and of how this program reads it.
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
    pub(super) quiet: Option<Duration>,
    pub(super) timeout: Duration,
    pub(super) transcript: usize,
    pub(super) scrollback: usize,
    pub(super) record: Option<PathBuf>,
    pub(super) prompt: Option<Regex>,
    pub(super) view_only: bool,
}

/// What the guest does with output while nobody is attached to a terminal.
///
/// While somebody is attached, the program blocks until the fastest reader has
/// read its output, as on any terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unread {
    /// The guest keeps the newest output and drops the oldest; the program keeps
    /// running.
    #[default]
    Dropped,
    /// The guest drops nothing: the program blocks when the buffer is full.
    Kept,
}

/// Starts bash, or sh without it. No startup files are read, so that bash has its
/// default prompt.
const SHELL: &str = "command -v bash >/dev/null 2>&1 && exec bash --noprofile --norc; exec sh";

impl TerminalOptions {
    /// The value of `TERM`, unless the command sets it.
    pub const TERM: &str = "xterm-256color";

    /// How long the terminal must print nothing for an operation to end, if no time
    /// is set and it is not clear whether the program runs or waits for input.
    pub const DEFAULT_QUIET: Duration = Duration::from_secs(1);

    /// How long an operation waits at most, if not set.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// How many bytes of output this program keeps, if not set.
    pub const DEFAULT_TRANSCRIPT: usize = 1024 * 1024;

    /// How many lines of scrollback are kept, if not set.
    pub const DEFAULT_SCROLLBACK: usize = 1000;

    /// Returns the options of a terminal with a shell.
    pub fn new() -> Self {
        Self::command(Self::shell())
    }

    /// Returns the command of [`new`](Self::new): a shell, to which settings are added.
    pub fn shell() -> Command {
        Command::shell(SHELL)
    }

    /// Returns the options of a terminal with any program. The command's settings
    /// of input and collected output are ignored.
    pub fn command(command: Command) -> Self {
        Self {
            command: command.env_default("TERM", Self::TERM),
            size: TerminalSize::default(),
            unread: Unread::Dropped,
            quiet: None,
            timeout: Self::DEFAULT_TIMEOUT,
            transcript: Self::DEFAULT_TRANSCRIPT,
            scrollback: Self::DEFAULT_SCROLLBACK,
            record: None,
            prompt: None,
            view_only: false,
        }
    }

    /// Sets its tag: see [`Command::tag`].
    pub fn tag(self, tag: impl Into<String>) -> Self {
        self.change(|command| command.tag(tag))
    }

    /// Sets its working directory: see [`Command::current_dir`].
    pub fn current_dir(self, directory: impl Into<OsString>) -> Self {
        self.change(|command| command.current_dir(directory))
    }

    /// Sets an environment variable: see [`Command::env`].
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.change(|command| command.env(name, value))
    }

    /// Grants its program a secret: see [`Command::secret_env`].
    pub fn secret_env(self, name: impl Into<OsString>, secret: &Secret) -> Self {
        self.change(|command| command.secret_env(name, secret))
    }

    /// Sets the user that it runs as: see [`Command::user`].
    pub fn user(self, user: impl Into<String>) -> Self {
        self.change(|command| command.user(user))
    }

    /// Sets its size. The default is 120 by 30.
    pub fn size(mut self, size: TerminalSize) -> Self {
        self.size = size;
        self
    }

    /// Sets what the guest does with output while nobody is attached.
    pub fn unread(mut self, unread: Unread) -> Self {
        self.unread = unread;
        self
    }

    /// Ends operations when it has printed nothing for this long, even if a program
    /// clearly runs: see [`Exchange`](super::Exchange).
    pub fn quiet(mut self, silence: Duration) -> Self {
        self.quiet = Some(silence);
        self
    }

    /// Sets how long an operation waits at most.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Limits the bytes of output that this program keeps, for
    /// [reading](super::Terminal::read) and for a
    /// [recording](super::Terminal::asciicast).
    pub fn transcript_limit(mut self, bytes: usize) -> Self {
        self.transcript = bytes;
        self
    }

    /// Limits the lines of scrollback that are kept.
    pub fn scrollback_limit(mut self, lines: usize) -> Self {
        self.scrollback = lines;
        self
    }

    /// Records the session in this folder, which is created and stays when the
    /// session ends: `transcript.log` (all output), `interaction.jsonl` (one JSON
    /// object a line) and `session.json`. For passwords see
    /// [`send_password`](super::Terminal::send_password).
    ///
    /// Nothing is dropped: if the host's disk is slow, the program in the guest
    /// blocks.
    pub fn record(mut self, folder: impl Into<PathBuf>) -> Self {
        self.record = Some(folder.into());
        self
    }

    /// Sets a pattern for a prompt that is not recognised otherwise: a regular
    /// expression, matched against the cursor's row up to the cursor.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pattern is not a valid regular expression.
    pub fn prompt(mut self, pattern: &str) -> Result<Self, Error> {
        self.prompt = Some(compile_regex(pattern)?);
        Ok(self)
    }

    /// Attaches for viewing only: input is discarded, and queries of the program
    /// to its terminal are left to others to answer. For
    /// [`attach_with`](super::Terminals::attach_with).
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

/// Compiles a regular expression of bounded time and memory.
pub(super) fn compile_regex(pattern: &str) -> Result<Regex, Error> {
    const MAX_SIZE: usize = 1 << 20;
    RegexBuilder::new(pattern)
        .size_limit(MAX_SIZE)
        .multi_line(true)
        .build()
        .map_err(|error| Error::Invalid(error.to_string()))
}
