//! What a terminal seems to wait for.

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
/// It is inferred from the row that the cursor is in, from the program that
/// reads what is typed, from how that program has set the terminal, and from
/// nothing that has scrolled away. It is a good guess, not more: the guest
/// could show anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A program runs and asks for nothing. Full-screen programs that are
    /// neither editor nor pager, such as `top`, run too.
    Running,
    /// A shell waits for a command.
    Ready,
    /// An interpreter, a debugger or a database client waits for a line.
    Repl,
    /// A program reads a line that is not shown.
    Password,
    /// A program asks for yes or no.
    Confirm,
    /// An editor has the screen.
    Editor,
    /// A pager has the screen, and waits for a key.
    Pager,
    /// There is too little to tell it from, or it contradicts itself: a program
    /// may be asking for something.
    Unknown,
    /// The program that the terminal was opened for has ended.
    Eof,
    /// The terminal was ended by a host.
    Terminated,
}

/// What sort of prompt the cursor stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prompt {
    /// That of a shell.
    Shell,
    /// That of Python or IPython.
    Python,
    /// That of the Python debugger.
    Pdb,
    /// There is none.
    None,
    /// Another one, or it cannot be told whether there is one.
    Unknown,
}

impl Status {
    /// A name that never changes, for machines.
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
    /// A name that never changes, for machines.
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
