//! The session against a guest that is not our agent.
//!
//! The guest's end of the link is written by hand, frame by frame. Nothing
//! waits for time to pass: a test knows that the host has taken what was sent
//! because a pong that was sent behind it has arrived.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vmcell_wire::{
    Cause, Channel, Decoder, Event, Exec, Exit, Failure, FailureKind, Header, Item, Kind, Outcome,
    Packed, Peer, Stage, Stdin, StreamId,
    limits::{MAX_PAYLOAD, MAX_STREAMS, MAX_WINDOW},
};

use super::*;

mod flow;
mod hello;
mod noise;
mod violations;

const BOOT_ID: [u8; 16] = [7; 16];

/// The window that the guest grants for standard input.
const GUEST_WINDOW: u32 = 64 * 1024;

/// The guest's end of a link.
struct Guest {
    link: UnixStream,
    decoder: Decoder,
    unread: Vec<u8>,
}

/// What a guest hears from the host.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Hello,
    Open(StreamId),
    Cancel(StreamId),
    Data(StreamId, Vec<u8>),
    End(StreamId),
    Credit(StreamId, Channel, u32),
}

impl Guest {
    fn new(link: UnixStream) -> Self {
        Self {
            link,
            decoder: Decoder::new(Peer::Host),
            unread: Vec::new(),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.link.write_all(bytes).await.unwrap();
    }

    /// The next thing that the host says; none if it hung up.
    async fn hear(&mut self) -> Option<Heard> {
        loop {
            let mut input = &self.unread[..];
            let item = self.decoder.decode(&mut input).unwrap();
            let heard = item.map(|item| match item {
                Item::Hello(_) => Heard::Hello,
                Item::Open { stream, .. } => Heard::Open(stream),
                Item::Cancel { stream } => Heard::Cancel(stream),
                Item::Data { stream, bytes, .. } => Heard::Data(stream, bytes.to_vec()),
                Item::End { stream, .. } => Heard::End(stream),
                Item::Credit {
                    stream,
                    channel,
                    bytes,
                } => Heard::Credit(stream, channel, bytes),
                other => panic!("no host says {other:?}"),
            });
            let taken = self.unread.len() - input.len();
            self.unread.drain(..taken);
            if heard.is_some() {
                return heard;
            }
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }
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
    frames(|out| encode::event(out, stream, &Event::Started { pid: 9 }).unwrap())
}

fn credit(stream: StreamId, bytes: u32) -> Vec<u8> {
    frames(|out| encode::credit(out, stream, Channel::Stdin, bytes))
}

fn close(stream: StreamId, outcome: &Outcome<'_>) -> Vec<u8> {
    frames(|out| encode::close(out, stream, outcome).unwrap())
}

/// The close of a process that says that it printed so much.
fn exited(stream: StreamId, stdout_bytes: u64) -> Vec<u8> {
    let exit = Exit {
        cause: Cause::Code(0),
        user_us: 0,
        system_us: 0,
        peak_rss_kib: 0,
        wall_us: 0,
        stdout_bytes,
        stderr_bytes: 0,
        outputs_cut: false,
        tree_ended: Some(true),
    };
    close(stream, &Outcome::Exited(exit))
}

/// Bytes that no shift or repetition leaves unchanged.
fn pattern(count: usize) -> Vec<u8> {
    (0..count as u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Sends `answer` to a host that connects.
async fn connect_to(answer: &[u8]) -> (Result<Session, Lost>, Guest) {
    let (host, guest) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(guest);
    guest.send(answer).await;
    (Session::connect(host, BOOT_ID).await, guest)
}

async fn connect_with_window(window: u32) -> (Session, Guest) {
    let (session, mut guest) = connect_to(&hello(window, BOOT_ID)).await;
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    (session.unwrap(), guest)
}

async fn connect() -> (Session, Guest) {
    connect_with_window(GUEST_WINDOW).await
}

fn exec() -> Request<'static> {
    Request::Exec(Exec {
        argv: Packed::default(),
        env: Packed::default(),
        cwd: b"",
        stdin: Stdin::Stream,
    })
}

async fn open(session: &Session, guest: &mut Guest) -> Stream {
    let stream = session.open(&exec()).unwrap();
    assert_eq!(guest.hear().await, Some(Heard::Open(stream.id())));
    stream
}

/// Returns when the host has taken all that the guest sent so far, which it
/// only can while the link is fine. Nothing else may come from the host.
async fn settle(session: &Session, guest: &mut Guest) {
    let mut ping = session.open(&Request::Ping).unwrap();
    assert_eq!(guest.hear().await, Some(Heard::Open(ping.id())));
    guest.send(&close(ping.id(), &Outcome::Pong)).await;
    let answer = ping.next().await;
    assert!(
        matches!(answer, Ok(StreamEvent::Closed(Closing::Pong))),
        "{answer:?}"
    );
}

/// Everything that a reader of standard output gets, and how it ends.
async fn read_to_end(stream: &mut Stream) -> (Vec<u8>, Result<Closing, Lost>) {
    let mut bytes = Vec::new();
    loop {
        match stream.next().await {
            Ok(StreamEvent::Started { .. }) => {}
            Ok(StreamEvent::Data(_, more)) => bytes.extend(more),
            Ok(StreamEvent::Closed(closing)) => return (bytes, Ok(closing)),
            Err(lost) => return (bytes, Err(lost)),
        }
    }
}

/// Lets a guest send bytes on a link with one open stream. The user of the
/// stream and whoever comes later must be told the same.
async fn lost_after(bytes: impl FnOnce(StreamId) -> Vec<u8>) -> Lost {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    guest.send(&bytes(stream.id())).await;
    let (_, end) = read_to_end(&mut stream).await;
    let lost = end.expect_err("the guest broke the protocol");
    assert_eq!(
        session.open(&exec()).unwrap_err(),
        OpenError::Lost(lost),
        "nothing more can be asked of this guest"
    );
    assert_eq!(*session.lost().borrow(), Some(lost));
    lost
}

/// How much memory this process has, in KiB: `VmRSS` of proc(5).
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}
