use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::{event::Event, outcome::Outcome};
use crate::{
    files::FileRequest,
    hello::Capabilities,
    network::NetworkRequest,
    process::{Attach, Position, ProcessMode, Resume, Selector, Start},
    renew::Renew,
    request_properties::{Outputs, Recovery, StartEvent},
    service::ServiceRequest,
    terminal::TerminalRequest,
    trust_store::TrustStore,
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
    /// Sets the guest's wall clock: [`Outcome::Done`]. The host sends this after the
    /// hello of a guest that it booted, because the time in the boot file is by
    /// then as old as the boot, and first of all when it has resumed a paused VM.
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
    /// Freezes all processes that the agent has started, and their descendants:
    /// [`Outcome::Done`] when they stand still. [`Outcome::Failed`] if they do not
    /// within 5 seconds; then they run on. What is started meanwhile is frozen, too.
    Freeze,
    /// Lets frozen processes run again: [`Outcome::Done`].
    Thaw,
    /// Gives a VM that was restored from a snapshot its own identity, then lets its
    /// processes run: [`Outcome::Done`]. If it fails, they stay frozen.
    #[serde(borrow)]
    Renew(Renew<'a>),
    /// A request about connections that begin in the guest: see
    /// [`network`](crate::network).
    #[serde(borrow)]
    Network(NetworkRequest<'a>),
    /// Counts the processes that the agent has started for hosts, and their
    /// descendants: [`Outcome::Processes`] at once. [`Outcome::Failed`] if the kernel
    /// does not count them.
    CountProcesses,
    /// Replaces the trust store of programs: [`Outcome::Done`]. If it fails, programs
    /// have that of the image.
    #[serde(borrow)]
    SetTrustStore(TrustStore<'a>),
}

/// The properties of each request. The matches have no wildcards where a new
/// request must decide.
impl<'a> Request<'a> {
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
            Self::Freeze | Self::Thaw | Self::Renew(_) => Capabilities::SNAPSHOTS,
            Self::Network(_) => Capabilities::NETWORK,
            Self::CountProcesses => Capabilities::PROCESS_COUNT,
            Self::SetTrustStore(_) => Capabilities::TRUST_STORE,
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

    /// Returns how the request continues on a new link when its link is lost.
    #[must_use]
    pub const fn recovery(&self) -> Recovery {
        match self {
            Self::Ping
            | Self::PowerOff { .. }
            | Self::Kill { .. }
            | Self::Detach { .. }
            | Self::Freeze
            | Self::Thaw
            | Self::CountProcesses
            | Self::SetTrustStore(_) => Recovery::Repeat,
            Self::Start(start) => match start.mode {
                ProcessMode::Foreground => Recovery::Resume,
                // The agent recognises a repeated start by its ticket.
                ProcessMode::Background => Recovery::Repeat,
            },
            Self::Attach(_) => Recovery::Reattach,
            Self::Forget { .. } => Recovery::RepeatRemoval,
            Self::List { .. } | Self::ListTrees { .. } => Recovery::RepeatList,
            Self::Terminal(request) => request.recovery(),
            Self::Service(request) => request.recovery(),
            Self::Network(request) => request.recovery(),
            // The agent cancels file operations and closes connections.
            Self::Files(_) | Self::Dial { .. } => Recovery::Fail,
            // A second signal has a second effect, and a time is out of date.
            Self::Signal { .. } | Self::SetClock { .. } | Self::Renew(_) => Recovery::Fail,
            // Sent by the recovery of a start, which repeats it.
            Self::Resume(_) => Recovery::Fail,
        }
    }

    /// Returns the outputs of the request's stream, with the credit that each has
    /// at first: `window` is the one of the host's hello.
    #[must_use]
    pub const fn outputs(&self, window: u32) -> Outputs {
        match self {
            Self::Start(start) => match start.mode {
                ProcessMode::Foreground => Outputs::both(window),
                ProcessMode::Background => Outputs::NONE,
            },
            Self::Resume(resume) => Outputs {
                stdout: Some(resume.stdout.window),
                stderr: Some(resume.stderr.window),
            },
            Self::Attach(attach) => Outputs {
                stdout: window_of(attach.stdout),
                stderr: window_of(attach.stderr),
            },
            Self::Terminal(request) => request.outputs(),
            Self::Service(request) => request.outputs(),
            Self::Network(request) => request.outputs(window),
            Self::Files(_) | Self::Dial { .. } => Outputs::stdout(window),
            Self::Ping
            | Self::PowerOff { .. }
            | Self::Signal { .. }
            | Self::Kill { .. }
            | Self::Detach { .. }
            | Self::Forget { .. }
            | Self::List { .. }
            | Self::SetClock { .. }
            | Self::ListTrees { .. }
            | Self::Freeze
            | Self::Thaw
            | Self::Renew(_)
            | Self::CountProcesses
            | Self::SetTrustStore(_) => Outputs::NONE,
        }
    }

    /// Returns the event that precedes data on the request's stream.
    #[must_use]
    pub const fn start_event(&self) -> StartEvent {
        match (self, self.recovery()) {
            (_, Recovery::Resume) => StartEvent::Started,
            (Self::Resume(_), _) | (_, Recovery::Reattach | Recovery::ResumeLog) => {
                StartEvent::Attached
            }
            (Self::Dial { .. }, _) => StartEvent::Connected,
            (Self::Network(request), _) => request.start_event(),
            _ => StartEvent::None,
        }
    }

    /// Returns whether only the program that started the VM may send the request,
    /// and none that attached to it.
    #[must_use]
    pub const fn is_for_owner(&self) -> bool {
        match self {
            Self::PowerOff { .. }
            | Self::Resume(_)
            | Self::SetClock { .. }
            | Self::Freeze
            | Self::Thaw
            | Self::Renew(_)
            | Self::Network(_)
            | Self::SetTrustStore(_) => true,
            Self::Ping
            | Self::Start(_)
            | Self::Attach(_)
            | Self::Signal { .. }
            | Self::Kill { .. }
            | Self::Detach { .. }
            | Self::Forget { .. }
            | Self::List { .. }
            | Self::Files(_)
            | Self::Terminal(_)
            | Self::Service(_)
            | Self::Dial { .. }
            | Self::ListTrees { .. }
            | Self::CountProcesses => false,
        }
    }

    /// Returns the request with `window` as the initial credit of the outputs for
    /// which it names one.
    #[must_use]
    pub const fn with_window(self, window: u32) -> Self {
        match self {
            Self::Attach(attach) => Self::Attach(Attach {
                stdout: with_window(attach.stdout, window),
                stderr: with_window(attach.stderr, window),
                ..attach
            }),
            Self::Resume(resume) => Self::Resume(Resume {
                stdout: resume.stdout.with_window(window),
                stderr: resume.stderr.with_window(window),
                ..resume
            }),
            Self::Terminal(request) => Self::Terminal(request.with_window(window)),
            Self::Service(request) => Self::Service(request.with_window(window)),
            _ => self,
        }
    }
}

const fn window_of(position: Option<Position>) -> Option<u32> {
    match position {
        Some(position) => Some(position.window),
        None => None,
    }
}

const fn with_window(position: Option<Position>, window: u32) -> Option<Position> {
    match position {
        Some(position) => Some(position.with_window(window)),
        None => None,
    }
}
