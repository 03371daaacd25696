use vmcell_wire::{
    Attach, Position, ProcessMode, Request, Resume, Selector, StreamId, WireError, encode,
    service::{LogStart, ReadLog, ServiceRequest},
    terminal::{AttachTerminal, TerminalRequest},
};

/// How a stream continues on a new link after its link was lost.
#[derive(Debug)]
pub(super) enum Recovery {
    /// It fails: the host cannot know whether the request was carried out.
    Fail,
    /// A request on files: it fails, because the agent has cancelled it.
    FailFiles,
    /// A connection to a port of the guest: it fails with the link.
    FailDial,
    /// The request is repeated, which has no further effect.
    Repeat(Vec<u8>),
    /// The removal is repeated. If the object does not exist, the first request
    /// has succeeded.
    Remove(Vec<u8>),
    /// A list is requested again, and entries that came before are left out.
    RepeatList {
        frame: Vec<u8>,
        /// The id of the last process that came.
        last: u32,
        /// How many came on this link.
        count: usize,
    },
    /// The same for a list of services.
    RepeatServices {
        frame: Vec<u8>,
        /// The name of the last service that came.
        last: String,
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

/// Which outputs a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outputs {
    pub(super) stdout: bool,
    pub(super) stderr: bool,
}

impl Outputs {
    pub(super) const BOTH: Self = Self {
        stdout: true,
        stderr: true,
    };
    pub(super) const NONE: Self = Self {
        stdout: false,
        stderr: false,
    };
}

/// How a stream names the process that it attaches to.
#[derive(Debug)]
pub(super) enum AttachTarget {
    /// As in the caller's request, which is this frame.
    Original(Vec<u8>),
    /// By the id that the agent reported.
    Id(u32),
}

impl Recovery {
    /// Returns the recovery of the stream that `frame` opens with `request`.
    pub(super) fn of(request: &Request<'_>, frame: Vec<u8>) -> Self {
        match request {
            Request::Start(start) if start.mode == ProcessMode::Foreground => Self::Resume {
                ticket: start.ticket,
                start: Some(frame),
            },
            Request::Attach(attach) => Self::Reattach {
                outputs: Outputs {
                    stdout: attach.stdout.is_some(),
                    stderr: attach.stderr.is_some(),
                },
                input: match attach.stdin {
                    true => AttachedInput::Stdin,
                    false => AttachedInput::None,
                },
                target: AttachTarget::Original(frame),
            },
            Request::Terminal(terminal) => Self::of_terminal(terminal, frame),
            // The agent recognises a repeated start by its ticket.
            Request::Start(_)
            | Request::Ping
            | Request::PowerOff { .. }
            | Request::Kill { .. }
            | Request::Detach { .. } => Self::Repeat(frame),
            Request::Forget { .. } => Self::Remove(frame),
            Request::List { after } | Request::ListTrees { after } => Self::RepeatList {
                frame,
                last: *after,
                count: 0,
            },
            Request::Files(_) => Self::FailFiles,
            Request::Dial { .. } => Self::FailDial,
            Request::Service(service) => Self::of_service(service, frame),
            _ => Self::Fail,
        }
    }

    fn of_service(request: &ServiceRequest<'_>, frame: Vec<u8>) -> Self {
        match request {
            // The agent recognises a repeated start by its ticket. The others
            // are idempotent.
            ServiceRequest::Start(_)
            | ServiceRequest::Wait { .. }
            | ServiceRequest::GetState { .. }
            | ServiceRequest::Stop { .. }
            | ServiceRequest::Restart { .. } => Self::Repeat(frame),
            ServiceRequest::Remove { .. } => Self::Remove(frame),
            ServiceRequest::List { after } => Self::RepeatServices {
                frame,
                last: (*after).to_owned(),
                count: 0,
            },
            ServiceRequest::ReadLog(logs) => Self::ResumeLog {
                name: logs.name.to_owned(),
                follow: logs.follow,
                frame: Some(frame),
            },
            _ => Self::Fail,
        }
    }

    fn of_terminal(request: &TerminalRequest<'_>, frame: Vec<u8>) -> Self {
        match request {
            TerminalRequest::Attach(attach) => Self::Reattach {
                outputs: Outputs {
                    stdout: true,
                    stderr: false,
                },
                input: AttachedInput::Terminal(attach.writer),
                target: AttachTarget::Original(frame),
            },
            TerminalRequest::Open(_)
            | TerminalRequest::Resize { .. }
            | TerminalRequest::GetState { .. }
            | TerminalRequest::Rename { .. } => Self::Repeat(frame),
            TerminalRequest::List { after } => Self::RepeatList {
                frame,
                last: *after,
                count: 0,
            },
            _ => Self::Fail,
        }
    }

    /// Returns which outputs the stream carries.
    pub(super) fn outputs(&self) -> Outputs {
        match self {
            Self::Fail
            | Self::Repeat(_)
            | Self::Remove(_)
            | Self::RepeatList { .. }
            | Self::RepeatServices { .. } => Outputs::NONE,
            Self::FailFiles | Self::FailDial | Self::ResumeLog { .. } => Outputs {
                stdout: true,
                stderr: false,
            },
            Self::Resume { .. } => Outputs::BOTH,
            Self::Reattach { outputs, .. } => *outputs,
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
            Self::Fail | Self::FailFiles | Self::FailDial => return Ok(false),
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
            Self::RepeatList { frame, count, .. } | Self::RepeatServices { frame, count, .. } => {
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
                    stdout: outputs.stdout.then_some(stdout),
                    stderr: outputs.stderr.then_some(stderr),
                    stdin: *input == AttachedInput::Stdin,
                };
                encode::open(out, stream, &Request::Attach(attach))?;
            }
        }
        Ok(true)
    }
}
