//! What is said about terminals.
//!
//! A terminal is a background process whose standard input and outputs are a
//! pseudoterminal: pty(7). What it prints comes on the channel `Stdout`, and
//! `Stderr` stays empty. All that can be asked of a process can be asked of it.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{MAX_COMMAND, MAX_PATH},
    process::{Position, Selector, Start},
};

/// A request about terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Terminal<'a> {
    /// Starts a program on a new terminal:
    /// [`Outcome::Spawned`](crate::Outcome::Spawned).
    #[serde(borrow)]
    Open(Open<'a>),
    /// Watches a terminal and types on it. As
    /// [`Request::Attach`](crate::Request::Attach), but any number of streams
    /// may type, and the end of the channel `Stdin` means nothing.
    #[serde(borrow)]
    Attach(AttachTerminal<'a>),
    /// Changes the size: [`Outcome::Done`](crate::Outcome::Done).
    Resize {
        /// Which terminal.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The new size.
        size: Size,
    },
    /// Sends a signal to the foreground process group:
    /// [`Outcome::Done`](crate::Outcome::Done).
    Signal {
        /// Which terminal.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The kernel's number of the signal.
        signal: u8,
    },
    /// Types something out of turn, all of it or nothing:
    /// [`Outcome::Done`](crate::Outcome::Done). It fails with
    /// [`Conflict`](crate::FailureKind::Conflict) while the program does not
    /// read what was typed before.
    #[serde(borrow)]
    Type(Typing<'a>),
    /// Asks who uses the terminal and how it is set:
    /// [`Outcome::Terminal`](crate::Outcome::Terminal).
    Look {
        /// Which terminal.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Gives a terminal another tag: [`Outcome::Done`](crate::Outcome::Done).
    Rename {
        /// Which terminal.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The tag that it has from now on.
        tag: &'a str,
    },
    /// Lists terminals, as [`Request::List`](crate::Request::List) does all
    /// processes.
    List {
        /// Only those with larger ids.
        after: u32,
    },
}

/// Starts a program on a new terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open<'a> {
    /// The program. It runs in the background, and where its standard input
    /// comes from means nothing.
    #[serde(borrow)]
    pub start: Start<'a>,
    /// How large the terminal is.
    pub size: Size,
    /// What becomes of output while nobody reads it.
    pub unread: Unread,
}

/// What becomes of a terminal's output while nobody watches it. The program
/// waits for the fastest of those who do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unread {
    /// The oldest bytes are dropped.
    Dropped,
    /// The program waits until somebody reads.
    Kept,
}

/// Watches a terminal and types on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachTerminal<'a> {
    /// Which terminal.
    #[serde(borrow)]
    pub process: Selector<'a>,
    /// From where on its output is wanted.
    pub output: Position,
    /// A number that the host draws for each one who types. With it a host
    /// whose link was lost finds out how much of its typing has arrived.
    pub writer: u64,
}

/// Types something out of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typing<'a> {
    /// Which terminal.
    #[serde(borrow)]
    pub process: Selector<'a>,
    /// What to type.
    pub bytes: &'a [u8],
    /// What it is.
    pub kind: Typed,
}

/// What is typed out of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Typed {
    /// The answer of a terminal to a question of the program. Of those who
    /// watch, only the one who came first is listened to: several answers would
    /// be taken for typing.
    Answer {
        /// Whose answer.
        writer: u64,
    },
    /// A password: the terminal does not echo it.
    Secret,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// How many characters a row has.
    pub columns: u16,
    /// How many rows there are.
    pub rows: u16,
}

/// How a terminal is set and who uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalState<'a> {
    /// Its size.
    pub size: Size,
    /// Whether it shows what is typed.
    pub echo: bool,
    /// Whether it hands typing over line by line.
    pub canonical: bool,
    /// Who reads what is typed. None: nobody any more.
    #[serde(borrow)]
    pub foreground: Option<Foreground<'a>>,
}

impl TerminalState<'_> {
    /// Whether the texts keep their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.foreground.is_none_or(|foreground| {
            foreground.command.len() <= MAX_COMMAND && foreground.cwd.len() <= MAX_PATH
        })
    }
}

/// The leader of a terminal's foreground process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreground<'a> {
    /// The kernel's number of the group.
    pub pid: u32,
    /// What the kernel calls it: at most 15 bytes; empty if it cannot be told.
    pub command: &'a [u8],
    /// Its working directory; empty if it cannot be told.
    pub cwd: &'a [u8],
}
