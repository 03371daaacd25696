use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Mutex,
};
use vmcell_wire::{Channel, Outcome};

use crate::printable;
use crate::session::{Stream, StreamEvent, StreamInput, StreamOutput};

/// A connection to a program in the guest, as [`Ports::dial`] makes it.
///
/// Bytes flow as fast as the slower side accepts them. Either side can close
/// its direction: [`shutdown`] does so here, and reading ends where the program
/// did so. Reading from a broken connection fails with
/// [`ConnectionReset`](io::ErrorKind::ConnectionReset), never with end of file.
///
/// Dropping it resets the connection, which the program notices, unless both
/// sides have closed their direction. After a [`shutdown`] the program still
/// receives what it accepts at once; to be sure that it has everything, read to
/// the end.
///
/// [`Ports::dial`]: super::Ports::dial
/// [`shutdown`]: tokio::io::AsyncWriteExt::shutdown
#[derive(Debug)]
pub struct Connection {
    reader: ConnectionReader,
    writer: ConnectionWriter,
}

/// The reading half of a [`Connection`].
#[derive(Debug)]
pub struct ConnectionReader {
    output: StreamOutput,
    /// The stream is dropped with the last half.
    stream: Arc<Mutex<Stream>>,
}

/// The writing half of a [`Connection`].
#[derive(Debug)]
pub struct ConnectionWriter {
    input: StreamInput,
    _stream: Arc<Mutex<Stream>>,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        let (output, input) = (stream.output(Channel::Stdout), stream.input());
        let stream = Arc::new(Mutex::new(stream));
        Self {
            reader: ConnectionReader {
                output,
                stream: stream.clone(),
            },
            writer: ConnectionWriter {
                input,
                _stream: stream,
            },
        }
    }

    /// Splits it into two halves, for two tasks. The connection is closed when
    /// both are dropped.
    pub fn into_split(self) -> (ConnectionReader, ConnectionWriter) {
        (self.reader, self.writer)
    }
}

impl ConnectionReader {
    /// Returns the next bytes, without a copy; `None` at end of file.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        poll_fn(|context| self.poll_chunk(context, usize::MAX)).await
    }

    /// Waits until the stream is closed, which is when both sides have closed
    /// their direction.
    pub(super) async fn closed(&self) -> io::Result<()> {
        let mut stream = self.stream.lock().await;
        loop {
            match stream.next_except_output().await {
                Ok(StreamEvent::Closed(closing)) => return closed(&closing.outcome()),
                Ok(_) => {}
                Err(error) => return Err(io_error(error.to_string())),
            }
        }
    }

    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        max: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        Poll::Ready(match ready!(self.output.poll_next(context, max)) {
            Some(Ok(StreamEvent::Data(_, bytes))) => Ok(Some(bytes)),
            // A connection has no gaps.
            Some(Ok(_)) => Err(io_error("the guest sent an unexpected reply".to_owned())),
            Some(Err(error)) => Err(io_error(error.to_string())),
            None if self.output.has_ended() => Ok(None),
            None => Err(io_error("the program has broken the connection".to_owned())),
        })
    }
}

impl ConnectionWriter {
    /// Writes all of `bytes`, without a copy.
    pub(super) async fn send(&self, bytes: Bytes) -> io::Result<()> {
        match self.input.write(bytes).await {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes this direction.
    pub(super) fn end(&self) {
        self.input.end();
    }
}

/// Returns an error if a stream was closed early.
fn closed(outcome: &Outcome<'_>) -> io::Result<()> {
    Err(io_error(match outcome {
        Outcome::Done => return Ok(()),
        Outcome::Failed(failure) => printable(failure.text.as_bytes()).into_owned(),
        _ => "the guest sent an unexpected reply".to_owned(),
    }))
}

fn io_error(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, text)
}

impl AsyncRead for ConnectionReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let max = buffer.remaining();
        if let Some(bytes) = ready!(self.poll_chunk(context, max))? {
            buffer.put_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }
}

/// Fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the program no
/// longer reads.
impl AsyncWrite for ConnectionWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.input.poll_copy(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}
