use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    files::Files,
    hello::Capabilities,
    process::{Attach, Entry, Exit, Output, Resume, Selector, Start, Tree},
    service::{Service, State},
    terminal::{Terminal, TerminalState},
};

/// What a host asks for; it opens a stream.
///
/// Variants are only ever appended, and the fields of one never change: a new
/// shape is a new variant, and a [capability](crate::Capabilities) announces
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request<'a> {
    /// Answered with [`Outcome::Pong`] at once.
    Ping,
    /// Starts a program. In the foreground: [`Event::Started`], data, ends,
    /// [`Outcome::Exited`]. In the background: [`Outcome::Spawned`].
    #[serde(borrow)]
    Start(Start<'a>),
    /// Ends all processes, makes the disk clean and powers the VM off:
    /// [`Outcome::DiskClean`], or [`Outcome::Failed`] if the disk could not be
    /// made clean, in which case the VM goes down all the same.
    PowerOff {
        /// How long processes may take to react to SIGTERM before SIGKILL.
        grace_ms: u32,
    },
    /// Takes a foreground process up again: [`Event::Attached`], then as
    /// [`Start`](Self::Start).
    Resume(Resume),
    /// Watches a process: [`Event::Attached`], data and [`Event::Gap`], ends of
    /// the outputs that were asked for, [`Outcome::Exited`]. Cancelling the
    /// stream ends the watching only.
    #[serde(borrow)]
    Attach(Attach<'a>),
    /// Sends a signal to a process's group: [`Outcome::Done`].
    Signal {
        /// Which process.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The kernel's number of the signal.
        signal: u8,
    },
    /// Ends a process and all its descendants: [`Outcome::Exited`] when they
    /// are gone. An agent that is capable of [`TREES`](Capabilities::TREES) knows
    /// a command by its id or tag as long as processes live that it left behind,
    /// and by the pid of any of them.
    Kill {
        /// Which process.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Makes a foreground process a background one: [`Outcome::Done`].
    Detach {
        /// Which process.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Forgets a background process that has ended: [`Outcome::Done`].
    Forget {
        /// Which process.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Lists processes in the order of their ids, one [`Event::Listed`] each:
    /// [`Outcome::EndOfList`].
    List {
        /// Only those with larger ids.
        after: u32,
    },
    /// Does something with files: see [`files`](crate::files).
    #[serde(borrow)]
    Files(Files<'a>),
    /// Does something with terminals: see [`terminal`](crate::terminal).
    #[serde(borrow)]
    Terminal(Terminal<'a>),
    /// Does something with services: see [`service`](crate::service).
    #[serde(borrow)]
    Service(Service<'a>),
    /// Connects to a port of the guest's loopback: [`Event::Connected`], data on
    /// the channels `Stdin` (to the program) and `Stdout` (from it), the end of
    /// each where that side says no more, [`Outcome::Done`] after both.
    /// Cancelling the stream breaks the connection, and so does the loss of the
    /// link.
    Dial {
        /// The port.
        port: u16,
    },
    /// Sets the guest's wall clock: [`Outcome::Done`]. The host says this once,
    /// when a guest that it booted has said hello: what the boot file has is as
    /// old as the boot.
    SetClock {
        /// The host's wall clock, in nanoseconds since 1970.
        wall_time_ns: u64,
    },
    /// As [`List`](Self::List), but tells of commands that are known only for the
    /// processes that they left behind too: one [`Event::ListedTree`] each.
    ListTrees {
        /// Only those with larger ids.
        after: u32,
    },
}

impl Request<'_> {
    /// What an agent must be capable of to serve this.
    #[must_use]
    pub const fn capability(&self) -> Capabilities {
        match self {
            Self::Ping => Capabilities::NONE,
            Self::PowerOff { .. } => Capabilities::POWER_OFF,
            Self::Files(_) => Capabilities::FILES,
            Self::Terminal(_) => Capabilities::TERMINALS,
            Self::Service(_) => Capabilities::SERVICES,
            Self::Dial { .. } => Capabilities::PORTS,
            Self::SetClock { .. } => Capabilities::CLOCK,
            Self::ListTrees { .. } => Capabilities::TREES,
            Self::Start(_)
            | Self::Resume(_)
            | Self::Attach(_)
            | Self::Signal { .. }
            | Self::Kill { .. }
            | Self::Detach { .. }
            | Self::Forget { .. }
            | Self::List { .. } => Capabilities::PROCESSES,
        }
    }
}

/// Something that happens on a stream before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program was executed.
    Started {
        /// The number that the agent gave the process.
        id: u32,
        /// The kernel's number.
        pid: u32,
    },
    /// The process is watched from now on.
    Attached(Attached),
    /// Bytes of an output are not there any more. What follows on its channel
    /// comes from behind them.
    Gap {
        /// Which output.
        output: Output,
        /// How many bytes were dropped.
        bytes: u64,
    },
    /// A process of the list.
    #[serde(borrow)]
    Listed(Entry<'a>),
    /// A service of the list.
    #[serde(borrow)]
    Service(State<'a>),
    /// A program has taken the connection.
    Connected,
    /// A process of the list, with those that it left behind.
    #[serde(borrow)]
    ListedTree(Tree<'a>),
}

impl Event<'_> {
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Listed(entry) => entry.is_valid(),
            Self::Service(state) => state.is_valid(),
            Self::ListedTree(tree) => tree.is_valid(),
            Self::Started { .. } | Self::Attached(_) | Self::Gap { .. } | Self::Connected => true,
        }
    }
}

/// Where a stream stands that begins to watch a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The number that the agent gave the process.
    pub id: u32,
    /// The kernel's number.
    pub pid: u32,
    /// The offset at which standard output is taken up.
    pub stdout: u64,
    /// The same for standard error.
    pub stderr: u64,
    /// How many bytes of standard input the agent has taken; what was sent
    /// beyond them must be sent again. None: this stream does not feed it.
    pub stdin: Option<crate::process::Position>,
}

/// How a stream ended; it closes the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// It could not be done.
    #[serde(borrow)]
    Failed(Failure<'a>),
    /// The answer to a ping.
    Pong,
    /// The process ended.
    Exited(Exit),
    /// The VM goes down now; nothing will follow on any link. Agents that can
    /// tell whether the disk is clean answer [`DiskClean`](Self::DiskClean).
    PoweringOff,
    /// The program was executed and runs in the background.
    Spawned {
        /// The number that the agent gave the process.
        id: u32,
        /// The kernel's number.
        pid: u32,
    },
    /// It is done, and there is no more to say.
    Done,
    /// The list, or this part of it, is complete.
    EndOfList {
        /// Whether there are more processes behind the last one.
        more: bool,
    },
    /// How a terminal is set and who uses it.
    #[serde(borrow)]
    Terminal(TerminalState<'a>),
    /// How a service is.
    #[serde(borrow)]
    Service(State<'a>),
    /// All processes have ended, everything is written and the root is
    /// read-only. The VM goes down now; nothing will follow on any link.
    DiskClean,
}

impl Outcome<'_> {
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Failed(failure) => failure.is_valid(),
            Self::Terminal(state) => state.is_valid(),
            Self::Service(state) => state.is_valid(),
            Self::Pong
            | Self::Exited(_)
            | Self::PoweringOff
            | Self::Spawned { .. }
            | Self::Done
            | Self::EndOfList { .. }
            | Self::DiskClean => true,
        }
    }
}
