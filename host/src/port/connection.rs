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
use vmcell_wire::Channel;

use crate::session::{Closing, Stream, StreamEvent, StreamInput, StreamOutput};

/// A connection to a program of the guest, as [`Ports::dial`] makes it.
///
/// Bytes flow as fast as the slower side takes them. Either side can say that it
/// has said all: [`shutdown`] does so here, and reading ends where the program
/// did. A connection that broke ends with
/// [`ConnectionReset`](io::ErrorKind::ConnectionReset) and never looks as if
/// that was all.
///
/// Dropping it breaks it, and the program notices, unless both sides have said
/// all. After a [`shutdown`] the program is still given what it takes at once;
/// to be sure that it has everything, read to the end.
///
/// [`Ports::dial`]: super::Ports::dial
/// [`shutdown`]: tokio::io::AsyncWriteExt::shutdown
#[derive(Debug)]
pub struct Connection {
    reader: ConnectionReader,
    writer: ConnectionWriter,
}

/// What a program of the guest says.
#[derive(Debug)]
pub struct ConnectionReader {
    output: StreamOutput,
    /// Dropping the last half drops the stream.
    stream: Arc<Mutex<Stream>>,
}

/// What a program of the guest is told.
#[derive(Debug)]
pub struct ConnectionWriter {
    input: StreamInput,
    _stream: Arc<Mutex<Stream>>,
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Self {
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

    /// Its two directions, for two tasks. It breaks when both are dropped.
    pub fn into_split(self) -> (ConnectionReader, ConnectionWriter) {
        (self.reader, self.writer)
    }
}

impl ConnectionReader {
    /// The next bytes, without a copy. None: the program has said all.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        poll_fn(|context| self.poll_chunk(context, usize::MAX)).await
    }

    /// Waits until the stream is closed, which is when both sides have said all.
    pub(super) async fn closed(&self) -> io::Result<()> {
        let mut stream = self.stream.lock().await;
        loop {
            match stream.next_except_output().await {
                Ok(StreamEvent::Closed(Closing::Done)) => return Ok(()),
                Ok(StreamEvent::Closed(closing)) => return Err(reset(&closing)),
                Ok(_) => {}
                Err(lost) => return Err(io_error(lost.to_string())),
            }
        }
    }

    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        Poll::Ready(match ready!(self.output.poll_next(context, most)) {
            Some(Ok(StreamEvent::Data(_, bytes))) => Ok(Some(bytes)),
            // A connection has no gaps.
            Some(Ok(_)) => Err(io_error("the guest makes no sense".to_owned())),
            Some(Err(lost)) => Err(io_error(lost.to_string())),
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

    /// Says that this was all.
    pub(super) fn end(&self) {
        self.input.end();
    }
}

/// Why a stream that was closed is not complete.
fn reset(closing: &Closing) -> io::Error {
    match closing {
        Closing::Failed(failed) => io_error(failed.text.clone()),
        _ => io_error("the guest makes no sense".to_owned()),
    }
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
        let most = buffer.remaining();
        if let Some(bytes) = ready!(self.poll_chunk(context, most))? {
            buffer.put_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }
}

/// A program that takes no more is [`BrokenPipe`](io::ErrorKind::BrokenPipe).
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
