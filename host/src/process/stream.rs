use std::time::Duration;

use bytes::Bytes;
use vmcell_wire::{Channel, Request, Selector};

use super::{
    Command, ExecFailure, ExecInput, ExecParts, Exit, Input, Offsets, Output, OverflowPolicy,
    Process, ProcessId, output::collect, parts,
};
use crate::{
    error::Error,
    session::{Closing, Stream, StreamEvent},
    vm::Vm,
};

/// A command that runs, seen event by event.
///
/// One that [`Vm::exec_stream`](crate::Vm::exec_stream) started belongs to this
/// stream: dropping it ends the command and all its descendants, unless it was
/// [detached](Self::detach). One that was
/// [attached to](crate::Processes::attach) is only watched: dropping the stream
/// leaves it alone.
///
/// Nothing is read ahead of the caller but one window of bytes: a command that
/// prints while nobody calls [`next`](Self::next) is made to wait, or, if it is
/// only watched, loses its oldest bytes, which an [`ExecEvent::Gap`] tells.
///
/// A link that breaks is made anew, and the stream goes on where it was.
#[derive(Debug)]
pub struct ExecStream {
    stream: Stream,
    pub(super) vm: Vm,
    /// What it is called in errors.
    subject: String,
    owned: bool,
    id: Option<ProcessId>,
    pid: Option<u32>,
    tag: Option<String>,
    timeout: Option<Duration>,
    pub(super) max_output: usize,
    pub(super) overflow: OverflowPolicy,
    exit: Option<Exit>,
}

/// Something that happened to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecEvent {
    /// The program was executed.
    Started {
        /// Its process id in the guest.
        pid: u32,
    },
    /// It wrote to its standard output.
    Stdout(Bytes),
    /// It wrote to its standard error.
    Stderr(Bytes),
    /// Bytes that it wrote were dropped before they could be read. What comes
    /// next on that output stood behind them.
    Gap {
        /// Of which output.
        output: OutputKind,
        /// How many.
        bytes: u64,
    },
    /// It ended. This is the last event.
    Exited(Exit),
}

/// One of a command's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputKind {
    fn of(channel: Channel) -> Self {
        match channel {
            Channel::Stderr => Self::Stderr,
            _ => Self::Stdout,
        }
    }
}

impl ExecStream {
    /// A command that this stream decides over.
    pub(crate) fn owning(stream: Stream, vm: Vm, command: Command, tag: String) -> Self {
        let subject = format!("{:?} did not start", command.program());
        let mut this = Self::watching(stream, vm, subject);
        this.owned = true;
        this.tag = Some(tag);
        this.timeout = command.timeout;
        this.max_output = command.max_output;
        this.overflow = command.overflow;
        if let Input::Bytes(bytes) = command.input {
            this.input().feed(bytes);
        }
        this
    }

    /// A process that is watched.
    pub(super) fn watching(stream: Stream, vm: Vm, subject: String) -> Self {
        Self {
            stream,
            vm,
            subject,
            owned: false,
            id: None,
            pid: None,
            tag: None,
            timeout: None,
            max_output: Command::DEFAULT_MAX_OUTPUT,
            // Who only watches a process does not end it.
            overflow: OverflowPolicy::Stop,
            exit: None,
        }
    }

    /// Waits for the next event. None after [`ExecEvent::Exited`].
    ///
    /// # Errors
    /// [`Error::Exec`] if the command could not be started, or the process not
    /// be found; [`Error::Gone`] if the VM ended; [`Error::Transport`] if the
    /// link broke and could not be made anew.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, Error> {
        if self.exit.is_some() {
            return Ok(None);
        }
        loop {
            let event = match self.stream.next().await {
                Ok(event) => event,
                Err(lost) => return Err(self.vm.explain(lost).await),
            };
            if let Some(event) = self.understand(event)? {
                return Ok(Some(event));
            }
        }
    }

    /// Waits until the command runs and says where it is found. None if it has
    /// ended already; events that came before are lost.
    pub(super) async fn identified(&mut self) -> Result<Option<(ProcessId, u32)>, Error> {
        while self.id.is_none() && self.exit.is_none() {
            let event = match self.stream.next_except_output().await {
                Ok(event) => event,
                Err(lost) => return Err(self.vm.explain(lost).await),
            };
            self.understand(event)?;
        }
        Ok(self.id.zip(self.pid))
    }

    fn understand(&mut self, event: StreamEvent) -> Result<Option<ExecEvent>, Error> {
        Ok(Some(match event {
            StreamEvent::Started { id, pid } => {
                self.id = Some(ProcessId(id));
                self.pid = Some(pid);
                ExecEvent::Started { pid }
            }
            StreamEvent::Attached(attached) => {
                self.id = Some(ProcessId(attached.id));
                self.pid = Some(attached.pid);
                return Ok(None);
            }
            StreamEvent::Data(Channel::Stderr, bytes) => ExecEvent::Stderr(bytes),
            StreamEvent::Data(_, bytes) => ExecEvent::Stdout(bytes),
            StreamEvent::Gap(channel, bytes) => ExecEvent::Gap {
                output: OutputKind::of(channel),
                bytes,
            },
            StreamEvent::Closed(Closing::Exited(exit)) => {
                let exit = Exit::from_wire(&exit);
                self.exit = Some(exit);
                ExecEvent::Exited(exit)
            }
            StreamEvent::Closed(Closing::Failed(failed)) => {
                return Err(ExecFailure::from_guest(failed, self.subject.clone()).into());
            }
            StreamEvent::Listed(_)
            | StreamEvent::Service(_)
            | StreamEvent::Connected
            | StreamEvent::Closed(_) => return Err(Error::unexpected_reply()),
        }))
    }

    /// Collects what comes until the command ends, within the limits that it
    /// sets.
    ///
    /// # Errors
    /// See [`Vm::exec`](crate::Vm::exec).
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the stream.
    pub async fn wait_with_output(self) -> Result<Output, Error> {
        let timeout = self.timeout;
        collect(self, timeout).await
    }

    /// The command's standard input, if it was started with
    /// [`Command::stdin_stream`](crate::Command::stdin_stream).
    pub fn input(&self) -> ExecInput {
        ExecInput::new(self.stream.input())
    }

    /// Takes the stream apart: input, outputs and end, each to be used by
    /// itself, with [`AsyncRead`](tokio::io::AsyncRead) and
    /// [`AsyncWrite`](tokio::io::AsyncWrite).
    pub fn into_parts(self) -> ExecParts {
        ExecParts {
            stdin: self.input(),
            stdout: parts::reader(&self.stream, Channel::Stdout),
            stderr: parts::reader(&self.stream, Channel::Stderr),
            end: parts::ExecEnd(self),
        }
    }

    /// Waits for the end, past what comes on the outputs.
    pub(super) async fn end(&mut self) -> Result<Exit, Error> {
        loop {
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            let event = match self.stream.next_except_output().await {
                Ok(event) => event,
                Err(lost) => return Err(self.vm.explain(lost).await),
            };
            self.understand(event)?;
        }
    }

    /// Ends the command and all its descendants with SIGKILL. How it ended
    /// comes as an event.
    pub fn kill(&self) {
        match self.id {
            Some(ProcessId(id)) if !self.owned => {
                let process = Selector::Id(id);
                // The request alone does it, whoever waits for the answer.
                drop(self.vm.session().open(&Request::Kill { process }));
            }
            _ => self.stream.cancel(),
        }
    }

    /// Lets the command go on without this stream, in the background: it
    /// survives the end of the program's interest, and is known until it is
    /// [forgotten](Process::forget).
    ///
    /// # Errors
    /// See [`next`](Self::next).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, the command is ended.
    pub async fn detach(mut self) -> Result<Process, Error> {
        let Some((id, pid)) = self.identified().await? else {
            return Err(Error::Invalid("the command has ended".to_owned()));
        };
        let processes = self.vm.processes();
        processes.detach(id).await?;
        Ok(Process::new(
            self.vm.clone(),
            id,
            pid,
            self.tag.take().unwrap_or_default(),
        ))
    }

    /// The offsets of the bytes that come next, to go on from in another
    /// stream: see [`Processes::attach`](crate::Processes::attach).
    pub fn offsets(&self) -> Offsets {
        Offsets {
            stdout: self.stream.offset(Channel::Stdout),
            stderr: self.stream.offset(Channel::Stderr),
        }
    }

    /// The tag of a command that this stream started.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
}
