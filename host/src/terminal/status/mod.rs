//! Inference of what a terminal waits for.

mod commands;
mod evidence;
mod infer;
mod patterns;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use evidence::{Evidence, Foreground, Liveness, TtyModes};
pub(crate) use infer::infer;

/// What a terminal seems to wait for.
///
/// It is inferred from the cursor's row, from the foreground program, and from
/// the terminal modes that this program has set, but not from earlier output. It
/// is a guess: the guest can print anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A program runs and does not ask for input. That includes full-screen
    /// programs that are neither editor nor pager, such as `top`.
    Running,
    /// A shell waits for a command.
    Ready,
    /// An interpreter, a debugger or a database client waits for a line.
    Repl,
    /// A program reads a line without echo.
    Password,
    /// A program asks a yes/no question.
    Confirm,
    /// An editor uses the screen.
    Editor,
    /// A pager uses the screen, and waits for a key.
    Pager,
    /// The evidence is insufficient or contradictory: a program may be asking for
    /// input.
    Unknown,
    /// The terminal's initial program has ended.
    Eof,
    /// A host has terminated the terminal.
    Terminated,
}

/// What was inferred about a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inference {
    pub(crate) status: Status,
    pub(crate) prompt: Prompt,
    /// Whether a program clearly runs: see [`Evidence::is_busy`].
    pub(crate) is_busy: bool,
    /// Whether a line editor reads the input.
    pub(crate) edits_line: bool,
}

/// The kind of prompt at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prompt {
    /// A shell's prompt.
    Shell,
    /// The prompt of Python or IPython.
    Python,
    /// The prompt of the Python debugger.
    Pdb,
    /// No prompt.
    None,
    /// Another prompt, or not known.
    Unknown,
}

impl Status {
    /// Returns a stable, machine-readable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Repl => "repl",
            Self::Password => "password",
            Self::Confirm => "confirm",
            Self::Editor => "editor",
            Self::Pager => "pager",
            Self::Unknown => "unknown",
            Self::Eof => "eof",
            Self::Terminated => "terminated",
        }
    }
}

impl Prompt {
    /// Returns a stable, machine-readable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Python => "python",
            Self::Pdb => "pdb",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
