use vmcell_wire::{
    Attached, Cause, Channel, Exit, FailureKind, Lifetime, Output, Stage, StreamId,
    terminal::{Size, TerminalState},
};

/// Something the agent said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Hello,
    Started(StreamId, u32, u32),
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
