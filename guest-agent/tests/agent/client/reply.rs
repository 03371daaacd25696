use vmcell_wire::{
    Attached, Channel, Exit, ExitCause, FailureKind, Output, ProcessMode, Stage, StreamId, service,
    terminal::{Size, TerminalState},
};

/// A frame from the agent, as tests compare it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Hello,
    Started(StreamId, u32, u32),
    Connected(StreamId),
    Attached(StreamId, Attached),
    Gap(StreamId, Output, u64),
    Listed(StreamId, Listed),
    Data(StreamId, Channel, usize),
    End(StreamId, Channel),
    Credit(StreamId, u32),
    Exited(StreamId, Exit),
    Failed(StreamId, FailureKind, u16, Stage),
    Spawned(StreamId, u32, u32),
    Done(StreamId),
    EndOfList(StreamId, bool),
    Terminal(StreamId, TerminalSnapshot),
    Service(StreamId, ServiceState),
    ListedService(StreamId, ServiceState),
    Pong(StreamId),
    PoweringOff,
    Disconnected,
}

impl Reply {
    /// Returns whether it closes this stream.
    pub(crate) fn closes(&self, stream: StreamId) -> bool {
        match self {
            Self::Exited(id, _)
            | Self::Failed(id, ..)
            | Self::Spawned(id, ..)
            | Self::Done(id)
            | Self::EndOfList(id, _)
            | Self::Terminal(id, _)
            | Self::Service(id, _)
            | Self::Pong(id) => *id == stream,
            _ => false,
        }
    }
}

/// The state of a terminal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TerminalSnapshot {
    pub(crate) size: Size,
    pub(crate) echo: bool,
    pub(crate) canonical: bool,
    /// The pid, name and working directory of the foreground process.
    pub(crate) foreground: Option<(u32, String, String)>,
    /// Whether a program is blocked in a read of it.
    pub(crate) is_read: bool,
}

impl TerminalSnapshot {
    pub(crate) fn new(state: TerminalState<'_>, is_read: bool) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            size: state.size,
            echo: state.echo,
            canonical: state.canonical,
            foreground: state
                .foreground
                .map(|leader| (leader.pid, text(leader.command), text(leader.cwd))),
            is_read,
        }
    }
}

/// The state of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceState {
    pub(crate) name: String,
    /// In `Debug` format.
    pub(crate) phase: String,
    pub(crate) since_ms: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) restarts: u32,
    pub(crate) last_exit: Option<Exit>,
    /// Start and end of the kept part of its log.
    pub(crate) log: (u64, u64),
}

impl From<service::ServiceState<'_>> for ServiceState {
    fn from(state: service::ServiceState<'_>) -> Self {
        Self {
            name: state.name.into(),
            phase: format!("{:?}", state.phase),
            since_ms: state.since_ms,
            pid: state.pid,
            restarts: state.restarts,
            last_exit: state.last_exit,
            log: (state.log.start, state.log.end),
        }
    }
}

/// A process in a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: u32,
    pub(crate) tag: String,
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) uid: u32,
    pub(crate) mode: ProcessMode,
    pub(crate) stdout: (u64, u64),
    pub(crate) exit: Option<Exit>,
}

pub(crate) fn code(exit: &Exit) -> u8 {
    match exit.cause {
        ExitCause::Code(code) => code,
        other => panic!("ended by {other:?}"),
    }
}
