//! Terminals.
//!
//! A terminal is a background process whose standard input and outputs are a
//! pseudoterminal: pty(7). Its output comes on the channel `Stdout`, and `Stderr`
//! stays empty. All requests for processes apply to it too.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{MAX_COMMAND, MAX_PATH},
    process::{Position, Selector, Start},
    request_properties::{Outputs, Recovery},
};

/// A request about terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TerminalRequest<'a> {
    /// Starts a program on a new terminal:
    /// [`Outcome::Spawned`](crate::Outcome::Spawned).
    #[serde(borrow)]
    Open(OpenTerminal<'a>),
    /// Attaches to a terminal's input and output. As
    /// [`Request::Attach`](crate::Request::Attach), but any number of streams may
    /// send input, and the end of the channel `Stdin` is ignored.
    #[serde(borrow)]
    Attach(AttachTerminal<'a>),
    /// Changes the size: [`Outcome::Done`](crate::Outcome::Done).
    Resize {
        /// The terminal.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The new size.
        size: Size,
    },
    /// Sends a signal to the foreground process group:
    /// [`Outcome::Done`](crate::Outcome::Done).
    Signal {
        /// The terminal.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The signal number.
        signal: u8,
    },
    /// Writes input without an attached stream, all of it or nothing:
    /// [`Outcome::Done`](crate::Outcome::Done). It fails with
    /// [`Conflict`](crate::FailureKind::Conflict) while the program has not read
    /// the input before it.
    #[serde(borrow)]
    WriteInput(WriteInput<'a>),
    /// Returns the state of the terminal:
    /// [`Outcome::Terminal`](crate::Outcome::Terminal), or
    /// [`Outcome::TerminalRead`](crate::Outcome::TerminalRead) while a program reads
    /// it.
    GetState {
        /// The terminal.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Changes the tag of a terminal: [`Outcome::Done`](crate::Outcome::Done).
    Rename {
        /// The terminal.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The new tag.
        tag: &'a str,
    },
    /// Lists terminals, as [`Request::List`](crate::Request::List) does all
    /// processes.
    List {
        /// Lists only terminals with larger ids.
        after: u32,
    },
}

impl TerminalRequest<'_> {
    pub(crate) const fn recovery(&self) -> Recovery {
        match self {
            Self::Attach(_) => Recovery::Reattach,
            // The agent recognises a repeated start by its ticket. The others have
            // no further effect.
            Self::Open(_) | Self::Resize { .. } | Self::GetState { .. } | Self::Rename { .. } => {
                Recovery::Repeat
            }
            Self::List { .. } => Recovery::RepeatList,
            // A second signal or input has a second effect.
            Self::Signal { .. } | Self::WriteInput(_) => Recovery::Fail,
        }
    }

    pub(crate) const fn outputs(&self) -> Outputs {
        match self {
            Self::Attach(attach) => Outputs::stdout(attach.output.window),
            Self::Open(_)
            | Self::Resize { .. }
            | Self::Signal { .. }
            | Self::WriteInput(_)
            | Self::GetState { .. }
            | Self::Rename { .. }
            | Self::List { .. } => Outputs::NONE,
        }
    }

    pub(crate) const fn with_window(self, window: u32) -> Self {
        match self {
            Self::Attach(attach) => Self::Attach(AttachTerminal {
                output: attach.output.with_window(window),
                ..attach
            }),
            _ => self,
        }
    }
}

/// The parameters of starting a program on a new terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTerminal<'a> {
    /// The program. It runs in the background, and the source of its standard
    /// input is ignored.
    #[serde(borrow)]
    pub start: Start<'a>,
    /// The size of the terminal.
    pub size: Size,
    /// What happens to output while no stream is attached.
    pub unread: UnreadOutput,
}

/// What happens to a terminal's output while no stream is attached. With attached
/// streams, the program blocks on the fastest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnreadOutput {
    /// The oldest bytes are dropped.
    DropOldest,
    /// The program blocks until a stream reads.
    Block,
}

/// The parameters of attaching to a terminal's input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachTerminal<'a> {
    /// The terminal.
    #[serde(borrow)]
    pub process: Selector<'a>,
    /// The position from which to send its output.
    pub output: Position,
    /// A random number that the host chooses for each client that sends input.
    /// After losing its link, a host uses it to find out how much input arrived.
    pub writer: u64,
}

/// The parameters of writing input without an attached stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteInput<'a> {
    /// The terminal.
    #[serde(borrow)]
    pub process: Selector<'a>,
    /// The input.
    pub bytes: &'a [u8],
    /// The kind of input.
    pub kind: InputKind,
}

/// The kind of input that is written without an attached stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputKind {
    /// The reply of a terminal emulator to a query of the program. Only the reply
    /// of the client that attached first is accepted: the program would take
    /// further replies for keyboard input.
    QueryReply {
        /// The client that sends the reply.
        writer: u64,
    },
    /// A password, which the terminal does not echo.
    Secret,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The number of characters in a row.
    pub columns: u16,
    /// The number of rows.
    pub rows: u16,
}

/// The state of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalState<'a> {
    /// Its size.
    pub size: Size,
    /// Whether it echoes input (`ECHO` of termios(3)).
    pub echo: bool,
    /// Whether it passes on input line by line (`ICANON` of termios(3)).
    pub canonical: bool,
    /// The foreground process group, which reads the input, if there is one.
    #[serde(borrow)]
    pub foreground: Option<Foreground<'a>>,
}

impl TerminalState<'_> {
    /// Returns whether all texts are within their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.foreground.is_none_or(|foreground| {
            foreground.command.len() <= MAX_COMMAND && foreground.cwd.len() <= MAX_PATH
        })
    }
}

/// The leader of a terminal's foreground process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreground<'a> {
    /// The pid of the leader, which is the id of the group.
    pub pid: u32,
    /// Its command name (`comm`): at most 15 bytes; empty if unknown.
    pub command: &'a [u8],
    /// Its working directory; empty if unknown.
    pub cwd: &'a [u8],
}
