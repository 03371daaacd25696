//! What the fuzz target `session` reaches: a session, with a guest that the target plays.

mod guest;
mod report;
mod requests;

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    runtime::{self, Runtime},
    time::timeout,
};
use vmcell_wire::{Channel, Request, StreamId};

pub use self::report::StreamReport;
use self::{
    guest::{BOOT_ID, Guest, hello, key},
    requests::numbered,
};
use super::{Link, Session, Stream};

/// A session whose guest sends whatever it is told to.
pub struct GuestSession {
    runtime: Runtime,
    session: Session,
    guest: Guest,
    streams: Vec<OpenStream>,
    /// The size of the pieces that the guest writes.
    piece: usize,
    is_serial: bool,
    window: u32,
}

/// What is left when the guest has closed its end of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// In the order in which the streams were opened.
    pub streams: Vec<StreamReport>,
    /// What the guest has sent on their outputs, in frames that were whole.
    pub sent: Vec<[Vec<u8>; 2]>,
    /// Why the link ended.
    pub error: String,
    /// Whether the link was replaced at any time.
    pub was_reset: bool,
}

struct OpenStream {
    id: StreamId,
    /// `None` after it was dropped.
    stream: Option<Stream>,
    report: StreamReport,
}

/// Nobody waits for as long.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The most streams of a session here.
const MAX_STREAMS: usize = 8;

impl GuestSession {
    /// Connects to a guest that greets as ours does.
    ///
    /// # Panics
    /// If that fails.
    pub fn connect(is_serial: bool, window: u32, piece: usize) -> Self {
        let runtime = new_runtime();
        let window = window.max(1);
        let (session, guest) = runtime.block_on(async {
            let (host, link) = UnixStream::pair().expect("there are sockets");
            let mut guest = Guest::new(link);
            guest.write(&hello(window), piece).await;
            let link = match is_serial {
                true => Link::serial(host, key()),
                false => Link::socket(host),
            };
            let session = Session::connect(link, Some(BOOT_ID)).await;
            (session.expect("the guest has greeted"), guest)
        });
        Self {
            runtime,
            session,
            guest,
            streams: Vec::new(),
            piece,
            is_serial,
            window,
        }
    }

    /// Connects to a guest that sends this, and then closes its end. Returns why it fails, or
    /// what the session says about the guest.
    ///
    /// # Panics
    /// If it waits for ever.
    pub fn greet(bytes: &[u8], piece: usize, is_used: bool) -> Result<String, String> {
        new_runtime().block_on(async {
            let (host, link) = UnixStream::pair().expect("there are sockets");
            let link_of_host = match is_used {
                true => Link::used_serial(host, key()),
                false => Link::socket(host),
            };
            let mut guest = Guest::new(link);
            let connecting = Session::connect(link_of_host, Some(BOOT_ID));
            let writing = async move {
                guest.write(bytes, piece).await;
                let _ = guest.link.shutdown().await;
                let _ = guest.link.read_to_end(&mut guest.unread).await;
            };
            let both =
                async { tokio::join!(timeout(TIMEOUT, connecting), timeout(TIMEOUT, writing)) };
            let (connected, _) = both.await;
            match connected.expect("it waits for ever") {
                Ok(session) => Ok(session.peer().build.clone()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    /// Opens a stream with the request that has this number. Returns how many are open.
    pub fn open(&mut self, request: u8) -> usize {
        if self.streams.len() >= MAX_STREAMS {
            return self.streams.len();
        }
        let _guard = self.runtime.enter();
        if let Ok(stream) = self.session.open(&numbered(request)) {
            self.streams.push(OpenStream {
                id: stream.id,
                stream: Some(stream),
                report: StreamReport::default(),
            });
        }
        self.settle();
        self.streams.len()
    }

    /// Returns the id of a stream, or that of none.
    pub fn id(&self, index: usize) -> StreamId {
        let stream = self.streams.get(index);
        stream.map_or(StreamId::MAX, |stream| stream.id)
    }

    /// Has the guest send frames, and waits until the host has handled them. The last one
    /// must be whole.
    pub fn send(&mut self, frames: &[u8]) {
        let (guest, piece) = (&mut self.guest, self.piece);
        self.runtime
            .block_on(async { guest.write(frames, piece).await });
        self.settle();
    }

    /// Reads up to this many events of a stream, as far as they are there.
    pub fn read(&mut self, index: usize, count: usize) {
        self.with_stream(index, |stream, report| {
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..count {
                let Poll::Ready(event) = stream.poll_next(&mut context) else {
                    break;
                };
                if report.add(event) {
                    break;
                }
            }
        });
    }

    /// Writes to the input of a stream, as much as it accepts of so many bytes.
    pub fn write(&mut self, index: usize, count: usize) {
        self.with_stream(index, |stream, report| {
            let mut bytes = Bytes::from(vec![b'i'; count]);
            let input = stream.input();
            let mut context = Context::from_waker(Waker::noop());
            while !bytes.is_empty() {
                let before = bytes.len();
                match input.poll_write(&mut context, &mut bytes) {
                    Poll::Ready(true) => report.written += (before - bytes.len()) as u64,
                    Poll::Ready(false) | Poll::Pending => break,
                }
            }
        });
    }

    /// Ends the input of a stream.
    pub fn end_input(&mut self, index: usize) {
        self.with_stream(index, |stream, _| stream.input().end());
    }

    /// Cancels a stream.
    pub fn cancel(&mut self, index: usize) {
        self.with_stream(index, |stream, _| stream.cancel());
    }

    /// Drops a stream.
    pub fn drop_stream(&mut self, index: usize) {
        let _guard = self.runtime.enter();
        if let Some(open) = self.streams.get_mut(index) {
            open.stream = None;
        }
        self.settle();
    }

    /// Has the host replace the link, if it can be replaced, and the guest answer as ours
    /// does.
    ///
    /// # Panics
    /// If somebody waits for ever.
    pub fn reset_link(&mut self) {
        if !self.is_serial || self.has_failed() {
            return;
        }
        let Self {
            runtime,
            session,
            guest,
            window,
            ..
        } = self;
        session.drop_link();
        let answering = async {
            tokio::select! {
                () = guest.answer_reset(*window) => {}
                () = failed(session) => {}
            }
        };
        let answered = runtime.block_on(async { timeout(TIMEOUT, answering).await });
        answered.expect("the link is not replaced");
        self.settle();
    }

    /// Has the guest send these bytes and close its end, and reads all streams to their end.
    ///
    /// # Panics
    /// If one has none.
    pub fn finish(mut self, last: &[u8]) -> SessionEnd {
        let Self {
            runtime,
            session,
            guest,
            streams,
            piece,
            ..
        } = &mut self;
        let error = runtime.block_on(async {
            guest.write(last, *piece).await;
            let _ = guest.link.shutdown().await;
            let rest = async {
                let mut rest = Vec::new();
                // Until the host closes its end.
                while let Ok(1..) = guest.link.read_buf(&mut rest).await {
                    rest.clear();
                }
            };
            let ended = async { tokio::join!(failed(session), rest) };
            timeout(TIMEOUT, ended)
                .await
                .expect("the link does not end");
            let error = *session.link_error().borrow();
            for open in streams.iter_mut() {
                let Some(stream) = &mut open.stream else {
                    continue;
                };
                loop {
                    let event = timeout(TIMEOUT, stream.next()).await;
                    if open.report.add(event.expect("a stream does not end")) {
                        break;
                    }
                }
                let input = stream.input();
                let written = input.write(Bytes::from_static(b"input"));
                let written = timeout(TIMEOUT, written)
                    .await
                    .expect("its input does not end");
                assert!(!written, "there is nobody who reads it");
            }
            error
        });
        let _guard = self.runtime.enter();
        assert!(
            self.session.open(&Request::Ping).is_err(),
            "the link has ended"
        );
        let sent = self.streams.iter().map(|open| {
            [Channel::Stdout, Channel::Stderr].map(|channel| {
                self.guest
                    .sent
                    .remove(&(open.id, channel))
                    .unwrap_or_default()
            })
        });
        SessionEnd {
            sent: sent.collect(),
            streams: self
                .streams
                .iter()
                .map(|open| open.report.clone())
                .collect(),
            error: error.map_or_else(String::new, |error| error.to_string()),
            was_reset: self.guest.was_reset,
        }
    }

    /// Returns how many bytes of memory the outputs of all streams have.
    pub fn memory_used(&self) -> usize {
        let streams = self.streams.iter().filter_map(|open| open.stream.as_ref());
        streams
            .map(|stream| stream.state.lock().memory_used())
            .sum()
    }

    fn with_stream(&mut self, index: usize, act: impl FnOnce(&mut Stream, &mut StreamReport)) {
        let _guard = self.runtime.enter();
        let Some(OpenStream {
            stream: Some(stream),
            report,
            ..
        }) = self.streams.get_mut(index)
        else {
            return;
        };
        act(stream, report);
        self.settle();
    }

    fn has_failed(&self) -> bool {
        self.session.link_error().borrow().is_some()
    }

    /// Waits until the host has handled all that the guest has sent, or has given up the
    /// link.
    fn settle(&mut self) {
        let Self {
            runtime,
            session,
            guest,
            ..
        } = self;
        let settled = runtime.block_on(async {
            let Ok(mut ping) = session.open(&Request::Ping) else {
                return Ok(());
            };
            let settling = async {
                tokio::select! {
                    () = guest.answer_ping(ping.id) => {
                        let _ = poll_fn(|context| ping.poll_next(context)).await;
                    }
                    () = failed(session) => {}
                }
            };
            timeout(TIMEOUT, settling).await
        });
        settled.expect("somebody waits for ever");
    }
}

fn new_runtime() -> Runtime {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

/// Waits until the link has failed for good.
async fn failed(session: &Session) {
    let mut error = session.link_error();
    let _ = error.wait_for(Option::is_some).await;
}
