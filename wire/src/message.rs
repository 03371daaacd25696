use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    files::FileRequest,
    hello::Capabilities,
    process::{Attach, Exit, Output, ProcessEntry, ProcessTree, Resume, Selector, Start},
    service::{ServiceRequest, ServiceState},
    terminal::{TerminalRequest, TerminalState},
};

/// A request of the host, which opens a stream.
///
/// For compatibility, variants are only ever appended, and the fields of one
/// never change. New variants are announced by a
/// [capability](crate::Capabilities).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request<'a> {
    /// Checks that the agent responds: [`Outcome::Pong`] at once.
    Ping,
    /// Starts a program. In the foreground: [`Event::Started`], data, the ends of
    /// its channels, [`Outcome::Exited`]. In the background:
    /// [`Outcome::Spawned`].
    #[serde(borrow)]
    Start(Start<'a>),
    /// Ends all processes, brings the disk into a clean state and powers the VM
    /// off: [`Outcome::DiskClean`], or [`Outcome::Failed`] if the disk is not
    /// clean; the VM powers off in both cases.
    PowerOff {
        /// How long processes may take to react to SIGTERM before SIGKILL.
        grace_ms: u32,
    },
    /// Resumes a foreground process after its link was lost:
    /// [`Event::Attached`], then as [`Start`](Self::Start).
    Resume(Resume),
    /// Attaches to a process: [`Event::Attached`], data and [`Event::Gap`], the
    /// ends of the requested outputs, [`Outcome::Exited`]. Cancelling the stream
    /// detaches; the process continues.
    #[serde(borrow)]
    Attach(Attach<'a>),
    /// Sends a signal to a process's group: [`Outcome::Done`].
    Signal {
        /// The process.
        #[serde(borrow)]
        process: Selector<'a>,
        /// The signal number.
        signal: u8,
    },
    /// Kills a process and all its descendants: [`Outcome::Exited`] when they
    /// are gone. With the capability [`TREES`](Capabilities::TREES), the agent
    /// finds an ended command by its id or tag as long as descendants of it are
    /// alive, and by the pid of any of them.
    Kill {
        /// The process.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Turns a foreground process into a background one: [`Outcome::Done`].
    Detach {
        /// The process.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Drops the record of a background process that has ended: [`Outcome::Done`].
    Forget {
        /// The process.
        #[serde(borrow)]
        process: Selector<'a>,
    },
    /// Lists processes in the order of their ids, one [`Event::Listed`] each:
    /// [`Outcome::EndOfList`].
    List {
        /// Lists only processes with larger ids.
        after: u32,
    },
    /// A file operation: see [`files`](crate::files).
    #[serde(borrow)]
    Files(FileRequest<'a>),
    /// A terminal request: see [`terminal`](crate::terminal).
    #[serde(borrow)]
    Terminal(TerminalRequest<'a>),
    /// A service request: see [`service`](crate::service).
    #[serde(borrow)]
    Service(ServiceRequest<'a>),
    /// Connects to a TCP port on the guest's loopback: [`Event::Connected`], data
    /// on the channels `Stdin` (to the program) and `Stdout` (from it), the end
    /// of each channel when its sender shuts down, [`Outcome::Done`] after both.
    /// Cancelling the stream or losing the link closes the connection.
    Dial {
        /// The port.
        port: u16,
    },
    /// Sets the guest's wall clock: [`Outcome::Done`]. The host sends this once,
    /// after the hello of a guest that it booted, because the time in the boot
    /// file is by then as old as the boot.
    SetClock {
        /// The host's wall clock, in nanoseconds since 1970.
        wall_time_ns: u64,
    },
    /// As [`List`](Self::List), but includes ended commands that have live
    /// descendants: one [`Event::ListedTree`] each.
    ListTrees {
        /// Lists only processes with larger ids.
        after: u32,
    },
}

impl Request<'_> {
    /// Returns the capability that an agent needs to serve this.
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

/// An event on a stream before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program was executed.
    Started {
        /// The agent's id of the process.
        id: u32,
        /// The kernel's pid.
        pid: u32,
    },
    /// The stream is attached to the process.
    Attached(Attached),
    /// Bytes of an output were dropped. The data that follows on its channel
    /// comes after them.
    Gap {
        /// The output.
        output: Output,
        /// The number of dropped bytes.
        bytes: u64,
    },
    /// A process of the list.
    #[serde(borrow)]
    Listed(ProcessEntry<'a>),
    /// A service of the list.
    #[serde(borrow)]
    Service(ServiceState<'a>),
    /// The connection is established.
    Connected,
    /// A process of the list, with its descendants that outlived it.
    #[serde(borrow)]
    ListedTree(ProcessTree<'a>),
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

/// The positions at which a stream attaches to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The agent's id of the process.
    pub id: u32,
    /// The kernel's pid.
    pub pid: u32,
    /// The offset at which standard output begins.
    pub stdout: u64,
    /// The same for standard error.
    pub stderr: u64,
    /// How many bytes of standard input the agent has received; later ones must
    /// be sent again. `None` if this stream does not provide the input.
    pub stdin: Option<crate::process::Position>,
}

/// The result of a request, which closes its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The request failed.
    #[serde(borrow)]
    Failed(Failure<'a>),
    /// The answer to a ping.
    Pong,
    /// The process ended.
    Exited(Exit),
    /// The VM powers off now; nothing follows on any link. Newer agents, which
    /// report whether the disk is clean, send [`DiskClean`](Self::DiskClean).
    PoweringOff,
    /// The program was executed and runs in the background.
    Spawned {
        /// The agent's id of the process.
        id: u32,
        /// The kernel's pid.
        pid: u32,
    },
    /// The request succeeded, without a result.
    Done,
    /// The list, or this part of it, is complete.
    EndOfList {
        /// Whether there are more entries after the last one.
        more: bool,
    },
    /// The state of a terminal.
    #[serde(borrow)]
    Terminal(TerminalState<'a>),
    /// The state of a service.
    #[serde(borrow)]
    Service(ServiceState<'a>),
    /// All processes have ended, all data is written and the root is read-only.
    /// The VM powers off now; nothing follows on any link.
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
