//! What the fuzz target `session` reaches: a session, with a guest that the target plays.

use std::{
    collections::HashMap,
    future::poll_fn,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    runtime::{self, Runtime},
    task::yield_now,
    time::timeout,
};
use vmcell_wire::{
    Attach, CgroupLimits, Channel, Decoder, Hello, Item, Outcome, PackedStrings, Peer, Position,
    ProcessMode, Request, Rlimits, Selector, Start, Stdin, StreamId, encode,
    files::{FileOperation, FileRequest},
    reset::{RESET_PART, ResetKey, Scanned, Scanner},
    service::{LogStart, ReadLog, ServiceRequest},
};

use super::{Link, LinkError, Session, Stream, StreamEvent, WINDOW};

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

/// What the user of a stream has got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// All other events.
    pub events: Vec<String>,
    /// How it ended.
    pub end: Option<String>,
    /// How many bytes standard output has according to its exit.
    pub exit_bytes: Option<u64>,
    /// How many bytes of standard output were missing.
    pub missing: u64,
    /// The offset of the first byte of standard output.
    pub start: u64,
    /// How many bytes the host accepted for its input.
    pub written: u64,
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

struct Guest {
    link: UnixStream,
    decoder: Decoder,
    unread: Vec<u8>,
    /// Decodes what this guest sends.
    own: Decoder,
    sent: HashMap<(StreamId, Channel), Vec<u8>>,
    was_reset: bool,
}

const BOOT_ID: [u8; 16] = [7; 16];

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
        let _guard = self.runtime.enter();
        let Some(OpenStream {
            stream: Some(stream),
            report,
            ..
        }) = self.streams.get_mut(index)
        else {
            return;
        };
        for _ in 0..count {
            let mut context = Context::from_waker(Waker::noop());
            let Poll::Ready(event) = stream.poll_next(&mut context) else {
                break;
            };
            if report.add(event) {
                break;
            }
        }
        self.settle();
    }

    /// Writes to the input of a stream, as much as it accepts of so many bytes.
    pub fn write(&mut self, index: usize, count: usize) {
        let _guard = self.runtime.enter();
        let Some(OpenStream {
            stream: Some(stream),
            report,
            ..
        }) = self.streams.get_mut(index)
        else {
            return;
        };
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
        self.settle();
    }

    /// Ends the input of a stream.
    pub fn end_input(&mut self, index: usize) {
        self.with_stream(index, |stream| stream.input().end());
    }

    /// Cancels a stream.
    pub fn cancel(&mut self, index: usize) {
        self.with_stream(index, Stream::cancel);
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

    fn with_stream(&mut self, index: usize, act: impl FnOnce(&Stream)) {
        let _guard = self.runtime.enter();
        if let Some(OpenStream {
            stream: Some(stream),
            ..
        }) = self.streams.get(index)
        {
            act(stream);
        }
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

impl StreamReport {
    /// Adds an event. Returns whether it was the last one.
    fn add(&mut self, event: Result<StreamEvent, LinkError>) -> bool {
        match event {
            Ok(StreamEvent::Data(Channel::Stderr, bytes)) => self.stderr.extend(&bytes),
            Ok(StreamEvent::Data(_, bytes)) => self.stdout.extend(&bytes),
            Ok(StreamEvent::Gap(channel, bytes)) => {
                let (name, at) = match channel {
                    Channel::Stderr => ("stderr", self.stderr.len()),
                    _ => {
                        self.missing = self.missing.saturating_add(bytes);
                        ("stdout", self.stdout.len())
                    }
                };
                self.events
                    .push(format!("{bytes} bytes of {name} are missing at {at}"));
            }
            Ok(StreamEvent::Closed(closing)) => {
                if let Outcome::Exited(exit) = closing.outcome() {
                    self.exit_bytes = Some(exit.stdout_bytes);
                }
                self.end = Some(format!("{:?}", closing.outcome()));
                return true;
            }
            Err(error) => {
                self.end = Some(error.to_string());
                return true;
            }
            Ok(event) => {
                if let StreamEvent::Attached(attached) = &event {
                    self.start = attached.stdout;
                }
                let text = match &event {
                    StreamEvent::Listed(entry) => format!("{:?}", entry.event()),
                    event => format!("{event:?}"),
                };
                self.events.push(text);
            }
        }
        false
    }
}

impl Guest {
    fn new(link: UnixStream) -> Self {
        Self {
            link,
            decoder: Decoder::new(Peer::Host),
            unread: Vec::new(),
            own: Decoder::new(Peer::Guest),
            sent: HashMap::new(),
            was_reset: false,
        }
    }

    /// Sends bytes in pieces, unless the host has closed its end.
    async fn write(&mut self, bytes: &[u8], piece: usize) {
        self.remember(bytes);
        for piece in bytes.chunks(piece.max(1)) {
            if self.link.write_all(piece).await.is_err() {
                return;
            }
            yield_now().await;
        }
    }

    /// Remembers the data of outputs.
    fn remember(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while let Ok(Some(item)) = self.own.decode(&mut input) {
            if let Item::Data {
                stream,
                channel,
                bytes,
            } = item
            {
                self.sent
                    .entry((stream, channel))
                    .or_default()
                    .extend(bytes);
            }
        }
    }

    /// Waits for a ping, and answers it. All that comes before must be what a host may send.
    async fn answer_ping(&mut self, ping: StreamId) {
        loop {
            let mut input = &self.unread[..];
            let mut is_there = false;
            while let Some(item) = self.decoder.decode(&mut input).expect("a host sends it") {
                is_there |=
                    matches!(item, Item::Open { stream, request: Request::Ping } if stream == ping);
                assert!(!matches!(item, Item::OpenUnknown { .. }), "{item:?}");
            }
            self.unread.clear();
            if is_there {
                let mut pong = Vec::new();
                encode::close(&mut pong, ping, &Outcome::Pong).expect("it is small");
                self.write(&pong, pong.len()).await;
                return;
            }
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits for a reset, and answers it.
    async fn answer_reset(&mut self, window: u32) {
        let mut scanner = Scanner::new(key().to_bytes());
        self.unread.clear();
        let rest = loop {
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return std::future::pending().await;
            }
            let unread = std::mem::take(&mut self.unread);
            let mut input = &unread[..];
            let mut is_found = false;
            loop {
                match scanner.scan(&mut input) {
                    Scanned::Other(_) => {}
                    Scanned::Nothing => break,
                    Scanned::Mark => {
                        is_found = true;
                        break;
                    }
                }
            }
            if is_found {
                break input.to_vec();
            }
        };
        self.unread = rest;
        while self.unread.len() < RESET_PART {
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return std::future::pending().await;
            }
        }
        let nonce: Vec<u8> = self.unread.drain(..RESET_PART).collect();
        self.decoder = Decoder::new(Peer::Host);
        self.own = Decoder::new(Peer::Guest);
        self.was_reset = true;
        let answer = [&nonce[..], &hello(window)].concat();
        let _ = self.link.write_all(&answer).await;
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

fn key() -> ResetKey {
    ResetKey::new(*b"0123456789abcdef")
}

fn hello(window: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    let hello = Hello::new("a guest that is fuzzed", window, BOOT_ID);
    encode::hello(&mut frame, &hello).expect("it is small");
    frame
}

/// Returns a request of each kind that has a state machine of its own.
fn numbered(number: u8) -> Request<'static> {
    let from_the_start = Position {
        offset: 0,
        window: WINDOW,
    };
    match number % 9 {
        0 => Request::Start(Start {
            ticket: 4711,
            tag: "",
            argv: PackedStrings::default(),
            env: PackedStrings::default(),
            default_env: true,
            cwd: b"",
            make_cwd: false,
            user: "",
            umask: None,
            nice: 0,
            rlimits: Rlimits::default(),
            stdin: Stdin::Stream,
            mode: ProcessMode::Foreground,
            timeout_ms: 0,
            keep: 0,
            limits: CgroupLimits::default(),
        }),
        1 => Request::Attach(Attach {
            process: Selector::Pid(9),
            stdout: Some(from_the_start),
            stderr: Some(from_the_start),
            stdin: true,
        }),
        2 => Request::List { after: 0 },
        3 => Request::Service(ServiceRequest::ReadLog(ReadLog {
            name: "web",
            from: LogStart::Lines(10),
            follow: true,
            window: WINDOW,
        })),
        4 => Request::Dial { port: 80 },
        5 => Request::Files(FileRequest {
            root: b"/",
            operation: FileOperation::Read {
                path: b"a",
                offset: 0,
                length: 1 << 40,
            },
        }),
        6 => Request::Service(ServiceRequest::List { after: "" }),
        7 => Request::Forget {
            process: Selector::Pid(9),
        },
        _ => Request::ListTrees { after: 0 },
    }
}
