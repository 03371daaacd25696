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
    /// Whether the alternate screen is shown.
    pub(crate) alternate: bool,
    /// The process group that reads the input. `None` if the guest reports none.
    pub(crate) foreground: Option<Foreground<'a>>,
    /// `None` if the guest reports none.
    pub(crate) modes: Option<TtyModes>,
    /// Whether a program is blocked in a read of the terminal. `None` if the guest
    /// does not report it.
    pub(crate) is_read: Option<bool>,
    /// The user's pattern for the prompt.
    pub(crate) prompt: Option<&'a Regex>,
    /// The time since the last input, if nothing was printed since then.
    pub(crate) unanswered: Option<Duration>,
}

/// Whether the terminal's initial program still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Running,
    /// It has ended by itself.
    Exited,
    /// A host has terminated the terminal.
    Terminated,
}

/// The process group that reads the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreground<'a> {
    /// The name of its leader in the kernel, at most 15 bytes. Empty if the leader
    /// has ended before the others.
    pub(crate) command: &'a str,
    /// Whether it is the terminal's initial program.
    pub(crate) is_initial: bool,
}

/// The terminal modes that a program has set: termios(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TtyModes {
    /// Whether input is echoed.
    pub(crate) echo: bool,
    /// Whether the kernel passes on whole lines, rather than single keys.
    pub(crate) canonical: bool,
}
