use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use vmcell_wire::{Channel, Outcome, Request, Selector};

use super::{
    Cause, Command, ExecFailure, ExecInput, ExecParts, Exit, Input, Offsets, Output,
    OverflowPolicy, Process, ProcessId, output::collect, parts,
};
use crate::{
    error::Error,
    event_stream::event_stream,
    session::{Stream, StreamEvent},
    vm::{Vm, VmStream},
};

/// A running command, as a stream of events.
///
/// A stream that [`Vm::exec_stream`](crate::Vm::exec_stream) returned owns its
/// command: dropping the stream kills the command and all its descendants,
/// unless it was [detached](Self::detach). A stream that was
/// [attached](crate::Processes::attach) only observes: dropping it does not
/// affect the process.
///
/// At most one window of bytes is read ahead of the caller. If nobody calls
/// [`next`](Self::next), a command that prints is blocked. A process that is
/// only observed is not; its oldest bytes are dropped and reported as
/// [`ExecEvent::Gap`].
///
/// If the link breaks, it is re-established and the stream continues where it
/// was.
#[derive(Debug)]
pub struct ExecStream {
    stream: VmStream,
    /// Its name in errors.
    subject: String,
    owned: bool,
    id: Option<ProcessId>,
    pid: Option<u32>,
    tag: Option<String>,
    timeout: Option<Duration>,
    pub(super) max_output: usize,
    pub(super) overflow: OverflowPolicy,
    exit: Option<Exit>,
    failed: bool,
    recorder: Option<Box<dyn ExecRecorder>>,
}

/// Writes down what a command prints and how it ends.
pub(crate) trait ExecRecorder: fmt::Debug + Send + Sync {
    /// The command has printed something, or has ended.
    fn event(&mut self, event: &ExecEvent);

    /// The command is about to be killed for this.
    fn killed_for(&mut self, cause: Cause);

    /// The command could not be started, or its end is not known.
    fn failed(&mut self, error: &Error);
}

/// An event of a running command.
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
    /// Bytes that it wrote were dropped before they could be read. The next
    /// bytes of that output come after them.
    Gap {
        /// The output that they are missing from.
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

event_stream!(ExecStream, ExecEvent);

impl ExecStream {
    /// Creates a stream that owns its command.
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

    /// Creates a stream that only observes a process.
    pub(super) fn watching(stream: Stream, vm: Vm, subject: String) -> Self {
        Self {
            stream: VmStream::new(stream, vm),
            subject,
            owned: false,
            id: None,
            pid: None,
            tag: None,
            timeout: None,
            max_output: Command::DEFAULT_MAX_OUTPUT,
            // An observer does not kill the process.
            overflow: OverflowPolicy::Stop,
            exit: None,
            failed: false,
            recorder: None,
        }
    }

    /// Writes down all events that are read from it.
    pub(crate) fn recorded_by(mut self, recorder: Box<dyn ExecRecorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Tells the recorder why the command is about to be killed.
    pub(super) fn record_cause(&mut self, cause: Cause) {
        if let Some(recorder) = &mut self.recorder {
            recorder.killed_for(cause);
        }
    }

    /// Returns its VM.
    pub(super) fn vm(&self) -> &Vm {
        self.stream.vm()
    }

    /// Waits for the next event. Returns `None` after [`ExecEvent::Exited`].
    ///
    /// # Errors
    /// [`Error::Exec`] if the command could not be started or the process was
    /// not found; [`Error::Gone`] if the VM ended; [`Error::Transport`] if the
    /// link broke and could not be re-established.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, Error> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<ExecEvent>, Error>> {
        while self.exit.is_none() {
            let received = ready!(self.stream.poll_next(context));
            if let Some(event) = self.on_received(received)? {
                return Poll::Ready(Ok(Some(event)));
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Waits until the command runs, and returns its ids. Returns `None` if it
    /// has ended already. Events that arrived before are lost.
    pub(super) async fn wait_started(&mut self) -> Result<Option<(ProcessId, u32)>, Error> {
        while self.id.is_none() && self.exit.is_none() {
            let received = self.stream.next_except_output().await;
            self.on_received(received)?;
        }
        Ok(self.id.zip(self.pid))
    }

    fn on_received(
        &mut self,
        received: Result<StreamEvent, Error>,
    ) -> Result<Option<ExecEvent>, Error> {
        let event = received.and_then(|event| self.on_event(event));
        if let Some(recorder) = &mut self.recorder {
            match &event {
                Ok(Some(event)) => recorder.event(event),
                Ok(None) => {}
                Err(error) => recorder.failed(error),
            }
        }
        event
    }

    fn on_event(&mut self, event: StreamEvent) -> Result<Option<ExecEvent>, Error> {
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
            StreamEvent::Closed(closing) => match closing.outcome() {
                Outcome::Exited(exit) => {
                    let exit = Exit::from_wire(&exit);
                    self.exit = Some(exit);
                    ExecEvent::Exited(exit)
                }
                other => return Err(ExecFailure::refusal(&other, self.subject.clone())),
            },
            StreamEvent::Listed(_) | StreamEvent::Connected => {
                return Err(Error::unexpected_reply());
            }
        }))
    }

    /// Collects output until the command ends, within the limits that the
    /// command sets.
    ///
    /// # Errors
    /// See [`Vm::exec`](crate::Vm::exec).
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the stream.
    pub async fn wait_with_output(self) -> Result<Output, Error> {
        self.inspect_output(|_, _| {}).await
    }

    /// Same as [`wait_with_output`](Self::wait_with_output), and calls a function with all that
    /// the command prints, as it arrives, also with what is beyond the limits.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let stream = vm.exec_stream(vmcell::Command::new("make"))?;
    /// let output = stream
    ///     .inspect_output(|_, bytes| print!("{}", vmcell::printable(bytes)))
    ///     .await?;
    /// println!("exit code: {:?}", output.code());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Vm::exec`](crate::Vm::exec).
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the stream.
    pub async fn inspect_output(
        self,
        inspect: impl FnMut(OutputKind, &[u8]) + Send,
    ) -> Result<Output, Error> {
        let timeout = self.timeout;
        collect(self, timeout, inspect).await
    }

    /// Returns the command's standard input, which can be written if it was
    /// started with [`Command::stdin_stream`](crate::Command::stdin_stream).
    pub fn input(&self) -> ExecInput {
        ExecInput::new(self.stream.input())
    }

    /// Splits the stream into input, outputs and exit, which can be used
    /// separately, with [`AsyncRead`](tokio::io::AsyncRead) and
    /// [`AsyncWrite`](tokio::io::AsyncWrite).
    pub fn into_parts(self) -> ExecParts {
        ExecParts {
            stdin: self.input(),
            stdout: parts::reader(&self.stream, Channel::Stdout),
            stderr: parts::reader(&self.stream, Channel::Stderr),
            waiter: parts::ExecWaiter(self),
        }
    }

    /// Waits for the exit, without reading the outputs.
    pub(super) async fn end(&mut self) -> Result<Exit, Error> {
        loop {
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            let received = self.stream.next_except_output().await;
            self.on_received(received)?;
        }
    }

    /// Kills the command and all its descendants with SIGKILL. Its exit arrives
    /// as an event.
    pub fn kill(&self) {
        match self.id {
            Some(ProcessId(id)) if !self.owned => {
                let process = Selector::Id(id);
                // Sending the request is enough; nobody needs the reply.
                drop(self.stream.vm().session().open(&Request::Kill { process }));
            }
            _ => self.stream.cancel(),
        }
    }

    /// Turns the command into a background process that runs without this
    /// stream. The guest keeps its exit and its output until it is
    /// [forgotten](Process::forget).
    ///
    /// # Errors
    /// See [`next`](Self::next).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, the command is killed.
    pub async fn detach(mut self) -> Result<Process, Error> {
        let Some((id, pid)) = self.wait_started().await? else {
            return Err(Error::Invalid("the command has ended".to_owned()));
        };
        let vm = self.stream.vm().clone();
        let processes = vm.processes();
        processes.detach(id).await?;
        Ok(Process::new(
            vm,
            id,
            pid,
            self.tag.take().unwrap_or_default(),
        ))
    }

    /// Returns the offsets of the next bytes, from which another stream can
    /// continue: see [`Processes::attach`](crate::Processes::attach).
    pub fn offsets(&self) -> Offsets {
        Offsets {
            stdout: self.stream.offset(Channel::Stdout),
            stderr: self.stream.offset(Channel::Stderr),
        }
    }

    /// Returns the tag, if this stream started the command.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
}
