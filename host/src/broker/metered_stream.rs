use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::port::Meter;

/// A connection to a host whose bytes are counted.
pub(super) struct MeteredStream<S, M> {
    stream: S,
    meter: M,
}

impl<S, M> MeteredStream<S, M> {
    pub(super) fn new(stream: S, meter: M) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin, M: Meter + Unpin> AsyncRead for MeteredStream<S, M> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len().saturating_sub(before);
        Poll::Ready(self.meter.received(count))
    }
}

impl<S: AsyncWrite + Unpin, M: Meter + Unpin> AsyncWrite for MeteredStream<S, M> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        Poll::Ready(self.meter.sent(count).map(|()| count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
