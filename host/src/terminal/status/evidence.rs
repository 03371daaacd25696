use std::time::Duration;

use regex::Regex;

/// What the status of a terminal is inferred from.
#[derive(Clone, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) liveness: Liveness,
    /// The cursor's row up to the cursor, blanks included.
    pub(crate) before: &'a str,
    /// The cursor's row from the cursor on.
    pub(crate) after: &'a str,
    /// Whether the program has the screen for itself.
    pub(crate) alternate: bool,
    /// Who reads what is typed. None if the guest does not say.
    pub(crate) foreground: Option<Foreground<'a>>,
    /// None if the guest does not say.
    pub(crate) modes: Option<TtyModes>,
    /// How the user says that the prompt looks.
    pub(crate) prompt: Option<&'a Regex>,
    /// How long ago something was typed, if nothing was printed since then.
    pub(crate) unanswered: Option<Duration>,
}

/// Whether there is still somebody to type for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Running,
    /// The program that the terminal was opened for has ended.
    Exited,
    /// A host has ended the terminal.
    Terminated,
}

/// The process group that reads what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreground<'a> {
    /// What the kernel calls its first process, at most 15 bytes. Empty if that
    /// has ended before the others.
    pub(crate) command: &'a str,
    /// Whether it is that of the program that the terminal was opened for.
    pub(crate) is_initial: bool,
}

/// How a program has set the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TtyModes {
    /// Whether what is typed is shown.
    pub(crate) echo: bool,
    /// Whether the kernel collects lines, and not the program single keys.
    pub(crate) canonical: bool,
}
