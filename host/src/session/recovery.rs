use vmcell_wire::{
    Attach, Lifetime, Position, Request, Resume, Selector, StreamId, WireError, encode,
    service::{LogStart, Logs, Service},
    terminal::{AttachTerminal, Terminal},
};

/// How a stream goes on when its link was lost and there is a new one.
#[derive(Debug)]
pub(super) enum Recovery {
    /// It cannot: nobody knows whether the request was carried out.
    Fails,
    /// Work on files: it cannot either, because the agent has given it up.
    GivenUp,
    /// A connection: it is broken, as the link is.
    Breaks,
    /// By asking again, which changes nothing.
    Repeats(Vec<u8>),
    /// Something is removed: by asking again. If it is not there, that was done.
    Removes(Vec<u8>),
    /// A list: by asking again, and leaving out what was told before.
    Lists {
        frame: Vec<u8>,
        /// The last process that was told.
        last: u32,
        /// How many were told on this link.
        count: usize,
    },
    /// The same for a list of services.
    ListsServices {
        frame: Vec<u8>,
        /// The last service that was told.
        last: String,
        /// How many were told on this link.
        count: usize,
    },
    /// The log of a service, from where on it was read.
    Reads {
        name: String,
        follow: bool,
        /// The frame that asked for it, until it is known where it begins.
        asked: Option<Vec<u8>>,
    },
    /// A foreground process, which is taken up where it was, or started if the
    /// agent does not know it.
    Resumes {
        ticket: u64,
        /// The frame that starts it, until it is known to run.
        start: Option<Vec<u8>>,
    },
    /// A process that is watched, from where on it was seen.
    Watches {
        outputs: Outputs,
        feeds: Feeds,
        how: Watched,
    },
}

/// What a stream has to do with the input of the process that it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feeds {
    Nothing,
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
pub(super) enum Watched {
    /// As the caller did, in this frame.
    Asked(Vec<u8>),
    /// By the id that the agent told.
    Id(u32),
}

impl Recovery {
    /// For the request that `frame` opens a stream with.
    pub(super) fn of(request: &Request<'_>, frame: Vec<u8>) -> Self {
        match request {
            Request::Start(start) if start.lifetime == Lifetime::Foreground => Self::Resumes {
                ticket: start.ticket,
                start: Some(frame),
            },
            Request::Attach(attach) => Self::Watches {
                outputs: Outputs {
                    stdout: attach.stdout.is_some(),
                    stderr: attach.stderr.is_some(),
                },
                feeds: match attach.stdin {
                    true => Feeds::Stdin,
                    false => Feeds::Nothing,
                },
                how: Watched::Asked(frame),
            },
            Request::Terminal(terminal) => Self::of_terminal(terminal, frame),
            // A start has a ticket, by which the agent knows it again.
            Request::Start(_)
            | Request::Ping
            | Request::PowerOff { .. }
            | Request::Kill { .. }
            | Request::Detach { .. } => Self::Repeats(frame),
            Request::Forget { .. } => Self::Removes(frame),
            Request::List { after } | Request::ListTrees { after } => Self::Lists {
                frame,
                last: *after,
                count: 0,
            },
            Request::Files(_) => Self::GivenUp,
            Request::Dial { .. } => Self::Breaks,
            Request::Service(service) => Self::of_service(service, frame),
            _ => Self::Fails,
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
            | Service::Restart { .. } => Self::Repeats(frame),
            Service::Remove { .. } => Self::Removes(frame),
            Service::List { after } => Self::ListsServices {
                frame,
                last: (*after).to_owned(),
                count: 0,
            },
            Service::Logs(logs) => Self::Reads {
                name: logs.name.to_owned(),
                follow: logs.follow,
                asked: Some(frame),
            },
            _ => Self::Fails,
        }
    }

    fn of_terminal(request: &Terminal<'_>, frame: Vec<u8>) -> Self {
        match request {
            Terminal::Attach(used) => Self::Watches {
                outputs: Outputs {
                    stdout: true,
                    stderr: false,
                },
                feeds: Feeds::Terminal(used.writer),
                how: Watched::Asked(frame),
            },
            Terminal::Open(_)
            | Terminal::Resize { .. }
            | Terminal::Look { .. }
            | Terminal::Rename { .. } => Self::Repeats(frame),
            Terminal::List { after } => Self::Lists {
                frame,
                last: *after,
                count: 0,
            },
            _ => Self::Fails,
        }
    }

    /// Which outputs come on the stream.
    pub(super) fn outputs(&self) -> Outputs {
        match self {
            Self::Fails
            | Self::Repeats(_)
            | Self::Removes(_)
            | Self::Lists { .. }
            | Self::ListsServices { .. } => Outputs::NONE,
            Self::GivenUp | Self::Breaks | Self::Reads { .. } => Outputs {
                stdout: true,
                stderr: false,
            },
            Self::Resumes { .. } => Outputs::BOTH,
            Self::Watches { outputs, .. } => *outputs,
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
            Self::Fails | Self::GivenUp | Self::Breaks => return Ok(false),
            Self::Repeats(frame)
            | Self::Removes(frame)
            | Self::Reads {
                asked: Some(frame), ..
            }
            | Self::Watches {
                how: Watched::Asked(frame),
                ..
            } => out.extend_from_slice(frame),
            Self::Reads {
                name,
                follow,
                asked: None,
            } => {
                let logs = Logs {
                    name,
                    from: LogStart::Offset(stdout.offset),
                    follow: *follow,
                    window: stdout.window,
                };
                encode::open(out, stream, &Request::Service(Service::Logs(logs)))?;
            }
            Self::Lists { frame, count, .. } | Self::ListsServices { frame, count, .. } => {
                *count = 0;
                out.extend_from_slice(frame);
            }
            Self::Resumes { ticket, .. } => {
                let resume = Resume {
                    ticket: *ticket,
                    stdout,
                    stderr,
                };
                encode::open(out, stream, &Request::Resume(resume))?;
            }
            Self::Watches {
                feeds: Feeds::Terminal(writer),
                how: Watched::Id(id),
                ..
            } => {
                let used = AttachTerminal {
                    process: Selector::Id(*id),
                    output: stdout,
                    writer: *writer,
                };
                encode::open(out, stream, &Request::Terminal(Terminal::Attach(used)))?;
            }
            Self::Watches {
                outputs,
                feeds,
                how: Watched::Id(id),
            } => {
                let attach = Attach {
                    process: Selector::Id(*id),
                    stdout: outputs.stdout.then_some(stdout),
                    stderr: outputs.stderr.then_some(stderr),
                    stdin: *feeds == Feeds::Stdin,
                };
                encode::open(out, stream, &Request::Attach(attach))?;
            }
        }
        Ok(true)
    }
}
