use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use crate::session::StreamInput;

/// The standard input of a running command.
///
/// It does not keep the command alive: the command is killed when its
/// [`ExecStream`] is dropped. Dropping this does not close the input;
/// [`end`](Self::end) and
/// [`AsyncWriteExt::shutdown`](tokio::io::AsyncWriteExt::shutdown) do.
///
/// [`ExecStream`]: crate::ExecStream
#[derive(Clone, Debug)]
pub struct ExecInput(StreamInput);

impl ExecInput {
    pub(super) fn new(input: StreamInput) -> Self {
        Self(input)
    }

    /// Writes all of `bytes`, as fast as the guest accepts them. Returns false
    /// if nobody reads them any more.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, a part may have been written.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> bool {
        self.0.write(bytes.into()).await
    }

    /// Closes the input: the command reads end of file after what was written.
    pub fn end(&self) {
        self.0.end();
    }

    /// Writes all of `bytes` and closes the input, in a separate task: the
    /// command may print more than a window before it has read everything.
    pub(super) fn feed(self, bytes: Bytes) {
        tokio::spawn(async move {
            self.write(bytes).await;
            self.end();
        });
    }
}

/// Fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the command no
/// longer reads.
impl AsyncWrite for ExecInput {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_copy(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end();
        Poll::Ready(Ok(()))
    }
}
