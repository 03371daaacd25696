//! The session against a guest that is not our agent.
//!
//! The guest's end of the link is written by hand, frame by frame. Nothing
//! waits for time to pass: a test knows that the host has taken what was sent
//! because a pong that was sent behind it has arrived.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use vmcell_wire::{
    Attach, Attached, BufferedRange, CgroupLimits, Channel, Decoder, Event, Exit, ExitCause,
    Failure, FailureKind, Header, Hello, Item, Kind, Outcome, Output, PackedStrings, Peer,
    Position, ProcessEntry, ProcessMode, Resume, Rlimits, Selector, Stage, Start, Stdin, StreamId,
    limits::{MAX_FAILURE_TEXT, MAX_GAPS, MAX_LISTED, MAX_PAYLOAD, MAX_STREAMS, MAX_WINDOW},
    reset::{Nonce, RESET_PART, ResetKey, Scanned, Scanner},
    service::{
        FailureReason, LogStart, Phase, ReadLog, ServiceRequest, ServiceState, StartService,
        WaitFor,
    },
};

use super::*;
use flood::Flood;

mod flood;
mod flow_control;
mod gaps;
mod hello;
mod lost_link;
mod network;
mod outputs;
mod pauses;
mod process_count;
mod random_frames;
mod relay;
mod result_limits;
mod resume;
mod services;
mod versions;
mod violations;

const BOOT_ID: [u8; 16] = [7; 16];

/// The window that the guest grants for standard input.
const GUEST_WINDOW: u32 = 64 * 1024;

/// The default ticket of processes.
const TICKET: u64 = 4711;

/// The guest's id of a process, and its pid.
const ID: u32 = 5;
const PID: u32 = 9;

/// The guest's end of a link.
struct Guest {
    link: UnixStream,
    decoder: Decoder,
    unread: Vec<u8>,
    /// The acknowledgements that [`recv`](Self::recv) has skipped.
    acks: Vec<StreamId>,
}

/// A message from the host, abbreviated.
#[derive(Debug, PartialEq, Eq)]
enum FromHost {
    Hello,
    /// Any other request.
    Open(StreamId),
    /// The start of a process with this ticket.
    Start(StreamId, u64),
    Resume(StreamId, Resume),
    Attach(StreamId, Attach<'static>),
    /// A log, its start, and its window.
    ReadLog(StreamId, LogStart, u32),
    Cancel(StreamId),
    Ack(StreamId),
    Data(StreamId, Vec<u8>),
    End(StreamId),
    Credit(StreamId, Channel, u32),
}

impl FromHost {
    fn from_wire(item: Item<'_>) -> Self {
        match item {
            Item::Hello(_) => Self::Hello,
            Item::Open { stream, request } => match request {
                Request::Start(start) => Self::Start(stream, start.ticket),
                Request::Resume(resume) => Self::Resume(stream, resume),
                Request::Attach(attach) => Self::Attach(
                    stream,
                    Attach {
                        process: match attach.process {
                            Selector::Id(id) => Selector::Id(id),
                            Selector::Pid(pid) => Selector::Pid(pid),
                            Selector::Tag(tag) => Selector::Tag(tag.to_owned().leak()),
                        },
                        stdout: attach.stdout,
                        stderr: attach.stderr,
                        stdin: attach.stdin,
                    },
                ),
                Request::Service(ServiceRequest::ReadLog(logs)) => {
                    Self::ReadLog(stream, logs.from, logs.window)
                }
                _ => Self::Open(stream),
            },
            Item::Cancel { stream } => Self::Cancel(stream),
            Item::Ack { stream } => Self::Ack(stream),
            Item::Data { stream, bytes, .. } => Self::Data(stream, bytes.to_vec()),
            Item::End { stream, .. } => Self::End(stream),
            Item::Credit {
                stream,
                channel,
                bytes,
            } => Self::Credit(stream, channel, bytes),
            other => panic!("no host says {other:?}"),
        }
    }
}

impl Guest {
    fn new(link: UnixStream) -> Self {
        Self {
            link,
            decoder: Decoder::new(Peer::Host),
            unread: Vec::new(),
            acks: Vec::new(),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.link.write_all(bytes).await.unwrap();
    }

    /// Receives the next message. `None` if the host has closed the link.
    async fn recv_any(&mut self) -> Option<FromHost> {
        loop {
            let mut input = &self.unread[..];
            let item = self.decoder.decode(&mut input).unwrap();
            let received = item.map(FromHost::from_wire);
            let taken = self.unread.len() - input.len();
            self.unread.drain(..taken);
            if received.is_some() {
                return received;
            }
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// As [`recv_any`](Self::recv_any), without acknowledgements, which may be
    /// late.
    async fn recv(&mut self) -> Option<FromHost> {
        loop {
            match self.recv_any().await {
                Some(FromHost::Ack(stream)) => self.acks.push(stream),
                received => return received,
            }
        }
    }

    /// Receives this many bytes of standard input.
    async fn recv_data(&mut self, stream: StreamId, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            match self.recv().await {
                Some(FromHost::Data(id, more)) if id == stream => bytes.extend(more),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(bytes.len(), count);
        bytes
    }

    /// Waits for a reset. Returns its nonce and the bytes before it.
    async fn recv_reset(&mut self) -> (Nonce, Vec<u8>) {
        let mut scanner = Scanner::new(key().to_bytes());
        let mut before = Vec::new();
        loop {
            let unread = std::mem::take(&mut self.unread);
            let mut input = &unread[..];
            loop {
                match scanner.scan(&mut input) {
                    Scanned::Other(bytes) => before.extend_from_slice(bytes),
                    Scanned::Nothing => break,
                    Scanned::Mark => {
                        self.unread = input.to_vec();
                        self.decoder = Decoder::new(Peer::Host);
                        return (self.recv_nonce().await, before);
                    }
                }
            }
            assert_ne!(self.link.read_buf(&mut self.unread).await.unwrap(), 0);
        }
    }

    async fn recv_nonce(&mut self) -> Nonce {
        while self.unread.len() < RESET_PART {
            assert_ne!(self.link.read_buf(&mut self.unread).await.unwrap(), 0);
        }
        let nonce = self.unread.drain(..RESET_PART).collect::<Vec<_>>();
        nonce.try_into().unwrap()
    }

    /// Answers a reset as our agent would.
    async fn answer_reset(&mut self, window: u32) {
        let (nonce, _) = self.recv_reset().await;
        assert_eq!(self.recv().await, Some(FromHost::Hello));
        let answer = [&nonce[..], &hello(window, BOOT_ID)].concat();
        self.send(&answer).await;
    }

    /// Receives the request to resume a stream.
    async fn recv_resume(&mut self, stream: StreamId) -> Resume {
        match self.recv().await {
            Some(FromHost::Resume(id, resume)) if id == stream => resume,
            other => panic!("{other:?}"),
        }
    }
}

/// The key that host and guest share for a serial port.
fn key() -> ResetKey {
    ResetKey::new(*b"0123456789abcdef")
}

fn hello(window: u32, boot_id: [u8; 16]) -> Vec<u8> {
    frames(|out| encode::hello(out, &Hello::new("a hostile guest", window, boot_id)).unwrap())
}

fn frames(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn frame(kind: Kind, stream: Option<StreamId>, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        length: u32::try_from(payload.len()).unwrap(),
        stream,
        kind,
    };
    [&header.to_bytes()[..], payload].concat()
}

fn data(stream: StreamId, channel: Channel, payload: &[u8]) -> Vec<u8> {
    frame(Kind::Data(channel), Some(stream), payload)
}

fn ends(stream: StreamId) -> Vec<u8> {
    frames(|out| {
        encode::end(out, stream, Channel::Stdout);
        encode::end(out, stream, Channel::Stderr);
    })
}

fn started(stream: StreamId) -> Vec<u8> {
    frames(|out| encode::event(out, stream, &Event::Started { id: ID, pid: PID }).unwrap())
}

fn gap(stream: StreamId, output: Output, bytes: u64) -> Vec<u8> {
    frames(|out| encode::event(out, stream, &Event::Gap { output, bytes }).unwrap())
}

/// An entry of a list.
fn listed(stream: StreamId, process: u32) -> Vec<u8> {
    let entry = listed_entry(process, PackedStrings::default());
    frames(|out| encode::event(out, stream, &Event::Listed(entry)).unwrap())
}

/// As [`listed`], with arguments, before it is encoded.
fn listed_entry(process: u32, argv: PackedStrings<'_>) -> ProcessEntry<'_> {
    let kept = BufferedRange { start: 0, end: 0 };
    ProcessEntry {
        id: process,
        pid: 100 + process,
        tag: "tag",
        argv,
        uid: 0,
        mode: ProcessMode::Background,
        age_ms: 1,
        stdout: kept,
        stderr: kept,
        exit: None,
    }
}

/// The event that a stream is attached to a process at these offsets.
fn attached(stream: StreamId, stdout: u64, stderr: u64, stdin: Option<Position>) -> Vec<u8> {
    let attached = Attached {
        id: ID,
        pid: PID,
        stdout,
        stderr,
        stdin,
    };
    frames(|out| encode::event(out, stream, &Event::Attached(attached)).unwrap())
}

fn credit(stream: StreamId, bytes: u32) -> Vec<u8> {
    frames(|out| encode::credit(out, stream, Channel::Stdin, bytes))
}

fn close(stream: StreamId, outcome: &Outcome<'_>) -> Vec<u8> {
    frames(|out| encode::close(out, stream, outcome).unwrap())
}

/// The close of a process that printed this many bytes.
fn exited(stream: StreamId, stdout_bytes: u64) -> Vec<u8> {
    close(stream, &Outcome::Exited(exit(stdout_bytes)))
}

fn exit(stdout_bytes: u64) -> Exit {
    Exit {
        cause: ExitCause::Code(0),
        user_us: 0,
        system_us: 0,
        peak_rss_kib: 0,
        wall_us: 0,
        stdout_bytes,
        stderr_bytes: 0,
        outputs_cut: false,
        oom_kills: 0,
        tree_ended: Some(true),
    }
}

/// Bytes that no shift or repetition leaves unchanged.
fn pattern(count: usize) -> Vec<u8> {
    (0..count as u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Sends `answer` to a host that connects.
async fn connect_to(answer: &[u8]) -> (Result<Session, LinkError>, Guest) {
    let (host, guest) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(guest);
    guest.send(answer).await;
    let link = Link::socket(host);
    (Session::connect(link, Some(BOOT_ID)).await, guest)
}

async fn connect_with_window(window: u32) -> (Session, Guest) {
    let (session, mut guest) = connect_to(&hello(window, BOOT_ID)).await;
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    (session.unwrap(), guest)
}

async fn connect() -> (Session, Guest) {
    connect_with_window(GUEST_WINDOW).await
}

/// A session on a serial port, whose link can be reset.
async fn connect_serial_with_window(window: u32) -> (Session, Guest) {
    let (host, guest) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(guest);
    guest.send(&hello(window, BOOT_ID)).await;
    let link = Link::serial(host, key());
    let session = Session::connect(link, Some(BOOT_ID)).await.unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    (session, guest)
}

async fn connect_serial() -> (Session, Guest) {
    connect_serial_with_window(GUEST_WINDOW).await
}

fn start(ticket: u64) -> Start<'static> {
    Start {
        ticket,
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
    }
}

fn exec() -> Request<'static> {
    Request::Start(start(TICKET))
}

async fn open(session: &Session, guest: &mut Guest) -> Stream {
    let stream = session.open(&exec()).unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Start(stream.id, TICKET)));
    stream
}

/// The request of a stream that attaches to a process.
fn attach(process: Selector<'_>, stdin: bool) -> Attach<'_> {
    let from_the_start = Position {
        offset: 0,
        window: WINDOW,
    };
    Attach {
        process,
        stdout: Some(from_the_start),
        stderr: Some(from_the_start),
        stdin,
    }
}

/// Opens a stream that is attached to a process from its start.
async fn watch(session: &Session, guest: &mut Guest) -> Stream {
    let attach = attach(Selector::Id(ID), false);
    let mut stream = session.open(&Request::Attach(attach)).unwrap();
    let expected = FromHost::Attach(stream.id, attach);
    assert_eq!(guest.recv().await, Some(expected));
    guest.send(&attached(stream.id, 0, 0, None)).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Attached(_))), "{event:?}");
    stream
}

/// Returns when the host has read all that the guest sent so far, which needs a
/// working link. Nothing else may come from the host.
async fn settle(session: &Session, guest: &mut Guest) {
    assert_eq!(settle_past(session, guest).await, []);
}

/// As [`settle`], and returns all that comes from the host until then.
async fn settle_past(session: &Session, guest: &mut Guest) -> Vec<FromHost> {
    let mut ping = session.open(&Request::Ping).unwrap();
    let mut before = Vec::new();
    loop {
        match guest.recv().await {
            Some(FromHost::Open(id)) if id == ping.id => break,
            Some(received) => before.push(received),
            None => panic!("the host hung up"),
        }
    }
    guest.send(&close(ping.id, &Outcome::Pong)).await;
    let answer = ping.next().await;
    assert!(
        matches!(outcome_of(&answer), Some(Outcome::Pong)),
        "{answer:?}"
    );
    before
}

/// Returns the credit for an output when everything that was sent has arrived.
/// Nothing else may come.
async fn recv_credit(
    session: &Session,
    guest: &mut Guest,
    stream: StreamId,
    channel: Channel,
) -> u32 {
    // What makes the host grant it was read before the first pong.
    settle_past(session, guest)
        .await
        .into_iter()
        .chain(settle_past(session, guest).await)
        .map(|received| match received {
            FromHost::Credit(id, on, bytes) if id == stream && on == channel => bytes,
            other => panic!("{other:?}"),
        })
        .sum()
}

/// Returns the outcome if the event is the end of a stream.
fn outcome_of(event: &Result<StreamEvent, LinkError>) -> Option<Outcome<'_>> {
    match event {
        Ok(StreamEvent::Closed(closing)) => Some(closing.outcome()),
        _ => None,
    }
}

/// Reads all data of a stream, and returns how it ended.
async fn read_to_end(stream: &mut Stream) -> (Vec<u8>, Result<Closing, LinkError>) {
    let mut bytes = Vec::new();
    loop {
        match stream.next().await {
            Ok(StreamEvent::Data(_, more)) => bytes.extend(more),
            Ok(StreamEvent::Closed(closing)) => return (bytes, Ok(closing)),
            Ok(_) => {}
            Err(error) => return (bytes, Err(error)),
        }
    }
}

/// Lets a guest send bytes on a link with one open stream. The user of the
/// stream and later callers must get the same error.
async fn error_after(bytes: impl FnOnce(StreamId) -> Vec<u8>) -> LinkError {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    guest.send(&bytes(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    let error = end.expect_err("the guest broke the protocol");
    assert_eq!(
        session.open(&exec()).unwrap_err(),
        OpenError::Link(error),
        "nothing more can be asked of this guest"
    );
    assert_eq!(*session.link_error().borrow(), Some(error));
    error
}
