use vmcell_wire::{
    Attached, Cause, Channel, Exit, FailureKind, Lifetime, Output, Stage, StreamId,
    service::State,
    terminal::{Size, TerminalState},
};

/// Something the agent said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
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
    Terminal(StreamId, Looked),
    Service(StreamId, Serving),
    ListedService(StreamId, Serving),
    Pong(StreamId),
    PoweringOff,
    HungUp,
}

impl Said {
    /// Whether it closes this stream.
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

/// What a look at a terminal shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Looked {
    pub(crate) size: Size,
    pub(crate) echo: bool,
    pub(crate) canonical: bool,
    /// Its pid, what it is called and where it is.
    pub(crate) foreground: Option<(u32, String, String)>,
}

impl From<TerminalState<'_>> for Looked {
    fn from(state: TerminalState<'_>) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            size: state.size,
            echo: state.echo,
            canonical: state.canonical,
            foreground: state
                .foreground
                .map(|leader| (leader.pid, text(leader.command), text(leader.cwd))),
        }
    }
}

/// How a service is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Serving {
    pub(crate) name: String,
    /// As it is written in code.
    pub(crate) phase: String,
    pub(crate) since_ms: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) restarts: u32,
    pub(crate) last_exit: Option<Exit>,
    /// Start and end of what is kept of its log.
    pub(crate) log: (u64, u64),
}

impl From<State<'_>> for Serving {
    fn from(state: State<'_>) -> Self {
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
    pub(crate) lifetime: Lifetime,
    pub(crate) stdout: (u64, u64),
    pub(crate) exit: Option<Exit>,
}

pub(crate) fn code(exit: &Exit) -> u8 {
    match exit.cause {
        Cause::Code(code) => code,
        other => panic!("ended by {other:?}"),
    }
}
