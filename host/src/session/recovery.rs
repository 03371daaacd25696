use vmcell_wire::{
    Attach, Lifetime, Position, Request, Resume, Selector, StreamId, WireError, encode,
    service::{LogStart, Logs, Service},
    terminal::{AttachTerminal, Terminal},
};

/// How a stream goes on when its link was lost and there is a new one.
#[derive(Debug)]
pub(super) enum Recovery {
    /// It cannot: nobody knows whether the request was carried out.
    Fail,
    /// Work on files: it cannot either, because the agent has given it up.
    FailFiles,
    /// A connection: it is broken, as the link is.
    FailDial,
    /// By asking again, which changes nothing.
    Repeat(Vec<u8>),
    /// Something is removed: by asking again. If it is not there, that was done.
    Remove(Vec<u8>),
    /// A list: by asking again, and leaving out what was told before.
    RepeatList {
        frame: Vec<u8>,
        /// The last process that was told.
        last: u32,
        /// How many were told on this link.
        count: usize,
    },
    /// The same for a list of services.
    RepeatServices {
        frame: Vec<u8>,
        /// The last service that was told.
        last: String,
        /// How many were told on this link.
        count: usize,
    },
    /// The log of a service, from where on it was read.
    ResumeLog {
        name: String,
        follow: bool,
        /// The frame that asked for it, until it is known where it begins.
        frame: Option<Vec<u8>>,
    },
    /// A foreground process, which is taken up where it was, or started if the
    /// agent does not know it.
    Resume {
        ticket: u64,
        /// The frame that starts it, until it is known to run.
        start: Option<Vec<u8>>,
    },
    /// A process that is watched, from where on it was seen.
    Reattach {
        outputs: Outputs,
        input: AttachedInput,
        target: AttachTarget,
    },
}

/// What a stream has to do with the input of the process that it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttachedInput {
    None,
    /// Its standard input, alone.
    Stdin,
    /// A terminal, on which it is known by this number.
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

/// How to name a process that is watched.
#[derive(Debug)]
pub(super) enum AttachTarget {
    /// As the caller did, in this frame.
    Original(Vec<u8>),
    /// By the id that the agent told.
    Id(u32),
}

impl Recovery {
    /// For the request that `frame` opens a stream with.
    pub(super) fn of(request: &Request<'_>, frame: Vec<u8>) -> Self {
        match request {
            Request::Start(start) if start.lifetime == Lifetime::Foreground => Self::Resume {
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
            // A start has a ticket, by which the agent knows it again.
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

    fn of_service(request: &Service<'_>, frame: Vec<u8>) -> Self {
        match request {
            // A start has a ticket, and what else changes something does the
            // same if it is done twice.
            Service::Start(_)
            | Service::Wait { .. }
            | Service::Look { .. }
            | Service::Stop { .. }
            | Service::Restart { .. } => Self::Repeat(frame),
            Service::Remove { .. } => Self::Remove(frame),
            Service::List { after } => Self::RepeatServices {
                frame,
                last: (*after).to_owned(),
                count: 0,
            },
            Service::Logs(logs) => Self::ResumeLog {
                name: logs.name.to_owned(),
                follow: logs.follow,
                frame: Some(frame),
            },
            _ => Self::Fail,
        }
    }

    fn of_terminal(request: &Terminal<'_>, frame: Vec<u8>) -> Self {
        match request {
            Terminal::Attach(attach) => Self::Reattach {
                outputs: Outputs {
                    stdout: true,
                    stderr: false,
                },
                input: AttachedInput::Terminal(attach.writer),
                target: AttachTarget::Original(frame),
            },
            Terminal::Open(_)
            | Terminal::Resize { .. }
            | Terminal::Look { .. }
            | Terminal::Rename { .. } => Self::Repeat(frame),
            Terminal::List { after } => Self::RepeatList {
                frame,
                last: *after,
                count: 0,
            },
            _ => Self::Fail,
        }
    }

    /// Which outputs come on the stream.
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

    /// Writes what opens the stream on a new link. False: nothing can.
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
                let logs = Logs {
                    name,
                    from: LogStart::Offset(stdout.offset),
                    follow: *follow,
                    window: stdout.window,
                };
                encode::open(out, stream, &Request::Service(Service::Logs(logs)))?;
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
                encode::open(out, stream, &Request::Terminal(Terminal::Attach(attach)))?;
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
