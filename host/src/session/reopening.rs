use vmcell_wire::{
    Attach, Event, Outputs, Position, Recovery, Request, Resume, Selector, StreamId, WireError,
    encode,
    service::{LogStart, ReadLog, ServiceRequest, is_valid_name},
    terminal::{AttachTerminal, TerminalRequest},
};

/// What a stream needs to continue on a new link as the [`Recovery`] of its
/// request says.
#[derive(Debug)]
pub(super) enum Reopening {
    /// It fails.
    Fail,
    /// The request is repeated, which has no further effect.
    Repeat(Vec<u8>),
    /// The removal is repeated. If the object does not exist, the first request
    /// has succeeded.
    Remove(Vec<u8>),
    /// A list is requested again, and entries that came before are left out.
    RepeatList {
        frame: Vec<u8>,
        /// The last entry that came.
        last: ListKey,
        /// How many came on this link.
        count: usize,
    },
    /// The log of a service is read on from where it broke off.
    ResumeLog {
        name: String,
        follow: bool,
        /// The request, until the agent reports where the log begins.
        frame: Option<Vec<u8>>,
    },
    /// A foreground process is resumed, or started if the agent does not know
    /// its ticket.
    Resume {
        ticket: u64,
        /// The request that starts it, until it is known to run.
        start: Option<Vec<u8>>,
    },
    /// The stream attaches to its process again, where it broke off.
    Reattach {
        outputs: Outputs,
        input: AttachedInput,
        target: AttachTarget,
    },
}

/// Which input of its process an attached stream writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttachedInput {
    None,
    /// Its standard input, exclusively.
    Stdin,
    /// A terminal, as the writer with this number.
    Terminal(u64),
}

/// What a list is sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListKey {
    /// The id of a process.
    Process(u32),
    /// The name of a service.
    Service(String),
}

impl ListKey {
    /// Returns the key after which the requested list begins.
    fn before(request: &Request<'_>) -> Option<Self> {
        match request {
            Request::List { after }
            | Request::ListTrees { after }
            | Request::Terminal(TerminalRequest::List { after }) => Some(Self::Process(*after)),
            Request::Service(ServiceRequest::List { after }) => {
                Some(Self::Service((*after).to_owned()))
            }
            _ => None,
        }
    }

    /// Returns whether it comes after `other`; `None` if they are keys of different
    /// lists.
    pub(super) fn is_after(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Process(this), Self::Process(other)) => Some(this > other),
            (Self::Service(this), Self::Service(other)) => Some(this > other),
            _ => None,
        }
    }

    /// Returns the key of an entry of a list; `None` for other events.
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Listed(entry) => Some(Self::Process(entry.id)),
            Event::ListedTree(tree) => Some(Self::Process(tree.entry.id)),
            Event::Service(state) if is_valid_name(state.name) => {
                Some(Self::Service(state.name.to_owned()))
            }
            _ => None,
        }
    }
}

/// How a stream names the process that it attaches to.
#[derive(Debug)]
pub(super) enum AttachTarget {
    /// As in the caller's request, which is this frame.
    Original(Vec<u8>),
    /// By the id that the agent reported.
    Id(u32),
}

impl Reopening {
    /// Returns the reopening of the stream that `frame` opens with `request`.
    pub(super) fn of(request: &Request<'_>, frame: Vec<u8>) -> Self {
        match (request.recovery(), request) {
            (Recovery::Repeat, _) => Self::Repeat(frame),
            (Recovery::RepeatRemoval, _) => Self::Remove(frame),
            (Recovery::Resume, Request::Start(start)) => Self::Resume {
                ticket: start.ticket,
                start: Some(frame),
            },
            (Recovery::Reattach, Request::Attach(attach)) => Self::Reattach {
                outputs: request.outputs(0),
                input: match attach.stdin {
                    true => AttachedInput::Stdin,
                    false => AttachedInput::None,
                },
                target: AttachTarget::Original(frame),
            },
            (Recovery::Reattach, Request::Terminal(TerminalRequest::Attach(attach))) => {
                Self::Reattach {
                    outputs: request.outputs(0),
                    input: AttachedInput::Terminal(attach.writer),
                    target: AttachTarget::Original(frame),
                }
            }
            (Recovery::ResumeLog, Request::Service(ServiceRequest::ReadLog(read))) => {
                Self::ResumeLog {
                    name: read.name.to_owned(),
                    follow: read.follow,
                    frame: Some(frame),
                }
            }
            (Recovery::RepeatList, _) => match ListKey::before(request) {
                Some(last) => Self::RepeatList {
                    frame,
                    last,
                    count: 0,
                },
                None => Self::Fail,
            },
            _ => Self::Fail,
        }
    }

    /// Writes the request that reopens the stream on a new link. Returns `false`
    /// if it cannot be reopened.
    pub(super) fn reopen(
        &mut self,
        out: &mut Vec<u8>,
        stream: StreamId,
        stdout: Position,
        stderr: Position,
    ) -> Result<bool, WireError> {
        match self {
            Self::Fail => return Ok(false),
            Self::Repeat(frame)
            | Self::Remove(frame)
            | Self::ResumeLog {
                frame: Some(frame), ..
            }
            | Self::Reattach {
                target: AttachTarget::Original(frame),
                ..
            } => out.extend_from_slice(frame),
            Self::ResumeLog {
                name,
                follow,
                frame: None,
            } => {
                let logs = ReadLog {
                    name,
                    from: LogStart::Offset(stdout.offset),
                    follow: *follow,
                    window: stdout.window,
                };
                encode::open(
                    out,
                    stream,
                    &Request::Service(ServiceRequest::ReadLog(logs)),
                )?;
            }
            Self::RepeatList { frame, count, .. } => {
                *count = 0;
                out.extend_from_slice(frame);
            }
            Self::Resume { ticket, .. } => {
                let resume = Resume {
                    ticket: *ticket,
                    stdout,
                    stderr,
                };
                encode::open(out, stream, &Request::Resume(resume))?;
            }
            Self::Reattach {
                input: AttachedInput::Terminal(writer),
                target: AttachTarget::Id(id),
                ..
            } => {
                let attach = AttachTerminal {
                    process: Selector::Id(*id),
                    output: stdout,
                    writer: *writer,
                };
                encode::open(
                    out,
                    stream,
                    &Request::Terminal(TerminalRequest::Attach(attach)),
                )?;
            }
            Self::Reattach {
                outputs,
                input,
                target: AttachTarget::Id(id),
            } => {
                let attach = Attach {
                    process: Selector::Id(*id),
                    stdout: outputs.stdout.map(|_| stdout),
                    stderr: outputs.stderr.map(|_| stderr),
                    stdin: *input == AttachedInput::Stdin,
                };
                encode::open(out, stream, &Request::Attach(attach))?;
            }
        }
        Ok(true)
    }
}
