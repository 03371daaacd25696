use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};
use vmcell_wire::Channel;

use super::{ExecInput, ExecStream, Exit};
use crate::{
    error::Error,
    session::{Stream, StreamEvent, StreamOutput},
};

/// The input, the outputs and the exit of a command as separate values, as in
/// `tokio::process::Child`.
///
/// ```no_run
/// # async fn example(vm: vmcell::Vm) -> Result<(), Box<dyn std::error::Error>> {
/// use tokio::io::AsyncWriteExt;
/// use vmcell::Command;
///
/// let mut sort = vm.exec_stream(Command::new("sort").stdin_stream())?.into_parts();
/// sort.stdin.write_all(b"b\na\n").await?;
/// sort.stdin.shutdown().await?;
/// let mut sorted = Vec::new();
/// tokio::io::copy(&mut sort.stdout, &mut sorted).await?;
/// assert!(sort.waiter.wait().await?.success());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ExecParts {
    /// Its standard input.
    pub stdin: ExecInput,
    /// Its standard output. Dropping it discards further output.
    pub stdout: ExecReader,
    /// Its standard error. Dropping it discards further output.
    pub stderr: ExecReader,
    /// Waits for it. Dropping this kills the command, as dropping the stream
    /// does.
    pub waiter: ExecWaiter,
}

/// One output of a command, as a byte stream.
///
/// A command that prints while nobody reads is blocked: read both outputs, or
/// drop the one that you do not need. Where bytes were dropped, reading fails
/// once with [`InvalidData`](io::ErrorKind::InvalidData) and then continues
/// after them, so incomplete output never looks complete.
#[derive(Debug)]
pub struct ExecReader(StreamOutput);

/// Waits for a command to end, and can kill it.
#[derive(Debug)]
pub struct ExecWaiter(pub(super) ExecStream);

pub(super) fn reader(stream: &Stream, channel: Channel) -> ExecReader {
    ExecReader(stream.output(channel))
}

impl ExecWaiter {
    /// Waits until the command has ended. Its outputs end first, so both must
    /// be read or dropped.
    ///
    /// # Errors
    /// See [`ExecStream::next`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&mut self) -> Result<Exit, Error> {
        self.0.end().await
    }

    /// Kills the command and all its descendants with SIGKILL.
    pub fn kill(&self) {
        self.0.kill();
    }
}

impl AsyncRead for ExecReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let event = ready!(self.0.poll_next(context, buffer.remaining()));
        Poll::Ready(match event {
            Some(Ok(StreamEvent::Data(_, bytes))) => {
                buffer.put_slice(&bytes);
                Ok(())
            }
            Some(Ok(StreamEvent::Gap(_, bytes))) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{bytes} bytes were dropped"),
            )),
            Some(Ok(_)) | None => Ok(()),
            Some(Err(error)) => Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                error.to_string(),
            )),
        })
    }
}
