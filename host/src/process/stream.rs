use std::time::Duration;

use bytes::Bytes;
use vmcell_wire::Channel;

use super::{Command, ExecFailure, Exit, Input, Output, output::collect};
use crate::{
    error::Error,
    session::{Closing, Stream, StreamEvent, StreamInput},
    vm::Vm,
};

/// A command that runs, seen event by event.
///
/// Dropping it ends the command and all its descendants.
///
/// Nothing is read ahead of the caller but one window of bytes: a command that
/// prints while nobody calls [`next`](Self::next) is made to wait.
#[derive(Debug)]
pub struct ExecStream {
    stream: Stream,
    vm: Vm,
    program: String,
    timeout: Duration,
    max_output: usize,
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
    /// It ended. This is the last event.
    Exited(Exit),
}

impl ExecStream {
    pub(crate) fn new(stream: Stream, vm: Vm, command: Command) -> Self {
        let program = command.program().to_string_lossy().into_owned();
        if let Input::Bytes(bytes) = command.input {
            // A task of its own: the command may print more than a window
            // before it has read everything. It ends with the stream.
            let input = stream.input();
            tokio::spawn(async move {
                input.write(bytes).await;
                input.end();
            });
        }
        Self {
            stream,
            vm,
            program,
            timeout: command.timeout.unwrap_or(Command::DEFAULT_TIMEOUT),
            max_output: command.max_output,
            exit: None,
        }
    }

    /// Waits for the next event. None after [`ExecEvent::Exited`].
    ///
    /// # Errors
    /// [`Error::Exec`] if the command could not be started, [`Error::Gone`] if
    /// the VM ended, [`Error::Transport`] if the link broke.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, Error> {
        if self.exit.is_some() {
            return Ok(None);
        }
        let event = match self.stream.next().await {
            Ok(event) => event,
            Err(lost) => return Err(self.vm.explain(lost).await),
        };
        Ok(Some(match event {
            StreamEvent::Started { pid } => ExecEvent::Started { pid },
            StreamEvent::Data(Channel::Stderr, bytes) => ExecEvent::Stderr(bytes),
            StreamEvent::Data(_, bytes) => ExecEvent::Stdout(bytes),
            StreamEvent::Closed(Closing::Exited(exit)) => {
                let exit = Exit::from_wire(&exit);
                self.exit = Some(exit);
                ExecEvent::Exited(exit)
            }
            StreamEvent::Closed(Closing::Failed(failure)) => {
                let program = self.program.clone();
                return Err(ExecFailure { program, ..failure }.into());
            }
            StreamEvent::Closed(_) => {
                return Err(Error::Transport("the answer makes no sense".to_owned()));
            }
        }))
    }

    /// Collects what comes until the command ends, within the timeout and the
    /// output limit that [`Vm::exec`](crate::Vm::exec) has or the command sets.
    ///
    /// # Errors
    /// See [`Vm::exec`](crate::Vm::exec).
    ///
    /// # Cancel safety
    /// If the future is dropped, the command and all its descendants are ended.
    pub async fn wait_with_output(self) -> Result<Output, Error> {
        let (timeout, max_output) = (self.timeout, self.max_output);
        collect(self, timeout, max_output).await
    }

    /// The command's standard input, if it was started with
    /// [`Command::stdin_stream`](crate::Command::stdin_stream).
    pub fn input(&self) -> ExecInput {
        ExecInput(self.stream.input())
    }

    /// Ends the command and all its descendants with SIGKILL. How it ended
    /// comes as an event.
    pub fn kill(&self) {
        self.stream.cancel();
    }
}

/// The standard input of a command that runs.
///
/// It does not keep the command alive: when its [`ExecStream`] is gone, so is
/// the command. Dropping it does not end the input; [`end`](Self::end) does.
#[derive(Clone, Debug)]
pub struct ExecInput(StreamInput);

impl ExecInput {
    /// Writes all of `bytes`, as fast as the guest takes them. The answer is
    /// false if nobody reads them any more.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, a part may have been written.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> bool {
        self.0.write(bytes.into()).await
    }

    /// Ends the input: the command reads end of file after what was written.
    pub fn end(&self) {
        self.0.end();
    }
}
