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

#[tokio::test]
async fn what_is_not_a_hello_is_refused_and_hung_up_on() {
    let stream = StreamId::new(1).unwrap();
    let mut other_magic = hello(GUEST_WINDOW, BOOT_ID);
    other_magic[Header::SIZE] ^= 1;
    for garbage in [
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        other_magic,
        started(stream),
        close(stream, &Outcome::Pong),
    ] {
        let (session, mut guest) = connect_to(&garbage).await;
        let lost = session.unwrap_err();
        assert!(matches!(lost, Lost::Violation(_)), "{garbage:?}: {lost:?}");
        while guest.hear().await.is_some() {}
    }
}

#[tokio::test]
async fn a_guest_that_hangs_up_before_or_within_its_hello_is_lost() {
    let hello = hello(GUEST_WINDOW, BOOT_ID);
    for length in [0, 3, hello.len() - 1] {
        let (host, mut guest) = UnixStream::pair().unwrap();
        guest.write_all(&hello[..length]).await.unwrap();
        drop(guest);
        let lost = Session::connect(host, BOOT_ID).await.unwrap_err();
        assert_eq!(lost, Lost::Closed, "after {length} bytes");
    }
}

#[tokio::test]
async fn the_agent_of_another_boot_is_refused() {
    let (session, mut guest) = connect_to(&hello(GUEST_WINDOW, [8; 16])).await;
    assert_eq!(session.unwrap_err(), Lost::WrongBoot);
    while guest.hear().await.is_some() {}
}

#[tokio::test]
async fn what_an_agent_cannot_do_is_not_asked_of_it() {
    let mut old = Hello::new("an old agent", GUEST_WINDOW, BOOT_ID);
    old.capabilities = Capabilities::POWER_OFF;
    let old = frames(|out| encode::hello(out, &old).unwrap());
    let (session, mut guest) = connect_to(&old).await;
    let session = session.unwrap();
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Unsupported);
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_name_with_escape_sequences_is_made_safe() {
    let evil = Hello::new("\x1b]0;owned\x07", GUEST_WINDOW, BOOT_ID);
    let evil = frames(|out| encode::hello(out, &evil).unwrap());
    let (session, _guest) = connect_to(&evil).await;
    let build = session.unwrap().peer().build.clone();
    assert!(!build.chars().any(char::is_control), "{build:?}");
}

#[tokio::test]
async fn an_impossible_length_is_refused_by_its_header_alone() {
    for (kind, length) in [
        (Kind::Data(Channel::Stdout), MAX_PAYLOAD + 1),
        (Kind::Data(Channel::Stdout), u32::MAX),
        (Kind::Data(Channel::Stdout), 0),
        (Kind::Close, MAX_PAYLOAD + 1),
        (Kind::Event, u32::MAX),
        (Kind::End(Channel::Stdout), 1),
        (Kind::Credit(Channel::Stdin), 3),
    ] {
        let lost = lost_after(|stream| {
            let header = Header {
                length,
                stream: Some(stream),
                kind,
            };
            header.to_bytes().to_vec()
        })
        .await;
        let Lost::Violation(WireError::BadLength { length: told, .. }) = lost else {
            panic!("{kind:?} of {length} bytes: {lost:?}");
        };
        assert_eq!(told, length);
    }
}

#[tokio::test]
async fn what_only_a_host_may_send_is_refused() {
    for (kind, payload) in [
        (Kind::Open, &b"\0"[..]),
        (Kind::Cancel, b""),
        (Kind::Data(Channel::Stdin), b"x"),
        (Kind::End(Channel::Stdin), b""),
        (Kind::Credit(Channel::Stdout), &[1, 0, 0, 0]),
        (Kind::Credit(Channel::Stderr), &[1, 0, 0, 0]),
    ] {
        let lost = lost_after(|stream| frame(kind, Some(stream), payload)).await;
        assert!(
            matches!(lost, Lost::Violation(WireError::UnexpectedKind(_))),
            "{kind:?}: {lost:?}"
        );
    }
}

#[tokio::test]
async fn a_second_hello_is_refused() {
    let lost = lost_after(|_| hello(GUEST_WINDOW, BOOT_ID)).await;
    assert_eq!(lost, Lost::Violation(WireError::Malformed));
}

#[tokio::test]
async fn messages_that_make_no_sense_are_refused() {
    for (kind, payload) in [
        (Kind::Event, &[0xff; 5][..]),
        (Kind::Close, &[0xff; 5]),
        // A pong with something behind it.
        (Kind::Close, &[1, 0]),
        // Credit for nothing.
        (Kind::Credit(Channel::Stdin), &[0; 4]),
    ] {
        let lost = lost_after(|stream| frame(kind, Some(stream), payload)).await;
        assert_eq!(lost, Lost::Violation(WireError::Malformed), "{kind:?}");
    }
}

#[tokio::test]
async fn nothing_may_come_on_a_stream_that_was_never_opened() {
    let stranger = StreamId::new(4711).unwrap();
    for bytes in [
        data(stranger, Channel::Stdout, b"x"),
        // So large that it would be read straight to its stream.
        data(stranger, Channel::Stdout, &[0; 100_000]),
        started(stranger),
        ends(stranger),
        credit(stranger, 1),
        close(stranger, &Outcome::Pong),
    ] {
        let lost = lost_after(|_| bytes).await;
        assert_eq!(lost, Lost::Violation(WireError::BadStream(4711)));
    }
}

#[tokio::test]
async fn data_past_the_window_is_refused_and_not_held() {
    // Small frames go through the reader's buffer, large ones past it.
    for size in [1000, MAX_PAYLOAD as usize] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let mut lost = session.lost();
        let frame = data(stream.id(), Channel::Stdout, &vec![b'x'; size]);
        let mut sent = 0;
        let lost = loop {
            tokio::select! {
                biased;
                lost = lost.wait_for(Option::is_some) => break *lost.unwrap(),
                () = guest.send(&frame) => sent += frame.len(),
            }
        };
        let overrun = Lost::Violation(WireError::Overrun(Channel::Stdout));
        assert_eq!(lost, Some(overrun));
        // What the host did not take is in the sockets.
        assert!(sent < 4 * WINDOW as usize, "{sent} bytes were taken");
        let (held, end) = read_to_end(&mut stream).await;
        assert_eq!(end.unwrap_err(), overrun);
        assert!(held.len() <= (WINDOW + MAX_PAYLOAD) as usize);
    }
}

#[tokio::test]
async fn each_byte_in_a_frame_of_its_own_arrives_and_costs_no_more_than_a_byte() {
    const COUNT: usize = 512 * 1024;
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let before = resident_kib();
    let bytes = pattern(COUNT);
    for part in bytes.chunks(4096) {
        let frames: Vec<u8> = part
            .iter()
            .flat_map(|byte| data(stream.id(), Channel::Stdout, &[*byte]))
            .collect();
        guest.send(&frames).await;
    }
    settle(&session, &mut guest).await;
    // A list of pieces would take 32 MiB and more. Other tests run meanwhile.
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 16 * 1024, "the host grew by {grown} KiB");
    guest.send(&ends(stream.id())).await;
    guest.send(&exited(stream.id(), COUNT as u64)).await;
    let (held, end) = read_to_end(&mut stream).await;
    assert!(held == bytes, "{} bytes arrived", held.len());
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
}

#[tokio::test]
async fn large_frames_arrive_unchanged_however_they_are_cut() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let bytes = pattern(700_000);
    let id = stream.id();
    let sending = async {
        let mut sent = Vec::new();
        for part in bytes.chunks(200_001) {
            sent.extend(data(id, Channel::Stdout, part));
        }
        sent.extend(ends(id));
        sent.extend(exited(id, bytes.len() as u64));
        for part in sent.chunks(77_777) {
            guest.send(part).await;
            tokio::task::yield_now().await;
        }
    };
    let ((), (received, end)) = tokio::join!(sending, read_to_end(&mut stream));
    assert!(received == bytes, "{} bytes arrived", received.len());
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
}

#[tokio::test]
async fn a_process_starts_once() {
    let lost = lost_after(|stream| [started(stream), started(stream)].concat()).await;
    assert_eq!(lost, Lost::Violation(WireError::Malformed));
}

#[tokio::test]
async fn nothing_may_come_on_an_output_that_has_ended() {
    for payload in [&b"x"[..], &[0; 100_000]] {
        let lost =
            lost_after(|stream| [ends(stream), data(stream, Channel::Stderr, payload)].concat())
                .await;
        assert_eq!(lost, Lost::Violation(WireError::Malformed));
    }
}

#[tokio::test]
async fn nothing_may_come_on_a_stream_that_is_closed() {
    for more in [
        |stream: StreamId| close(stream, &Outcome::Pong),
        |stream: StreamId| data(stream, Channel::Stdout, b"x"),
        |stream: StreamId| credit(stream, 1),
    ] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id();
        guest.send(&ends(id)).await;
        guest.send(&exited(id, 0)).await;
        guest.send(&more(id)).await;
        let mut lost = session.lost();
        let lost = *lost.wait_for(Option::is_some).await.unwrap();
        let expected = Lost::Violation(WireError::BadStream(id.get()));
        assert_eq!(lost, Some(expected));
        // What came before that was in order.
        let (_, end) = read_to_end(&mut stream).await;
        assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
    }
}

#[tokio::test]
async fn too_much_credit_is_refused() {
    let overflow = Lost::Violation(WireError::CreditOverflow(Channel::Stdin));
    assert_eq!(
        lost_after(|stream| credit(stream, u32::MAX)).await,
        overflow
    );
    let little_by_little = |stream| {
        let grants = MAX_WINDOW / GUEST_WINDOW;
        (0..grants)
            .flat_map(|_| credit(stream, GUEST_WINDOW))
            .collect()
    };
    assert_eq!(lost_after(little_by_little).await, overflow);
}

#[tokio::test]
async fn an_exit_that_counts_other_bytes_than_came_is_an_error() {
    for claimed in [0, 4, 6, u64::MAX] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id();
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        guest.send(&ends(id)).await;
        guest.send(&exited(id, claimed)).await;
        let (bytes, end) = read_to_end(&mut stream).await;
        assert_eq!(bytes, b"hello");
        assert!(end.is_err(), "{claimed} bytes were claimed: {end:?}");
    }
}

/// Only a stream that the host itself cancelled may be without the ends of its
/// outputs.
#[tokio::test]
async fn an_exit_without_the_ends_of_the_outputs_is_no_short_success() {
    for claimed in [6, u64::MAX] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id();
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        guest.send(&exited(id, claimed)).await;
        let (_, end) = read_to_end(&mut stream).await;
        assert!(end.is_err(), "{claimed} bytes were claimed: {end:?}");
    }
}

#[tokio::test]
async fn a_cancelled_process_may_have_printed_more_than_came() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id();
    stream.cancel();
    assert_eq!(guest.hear().await, Some(Heard::Cancel(id)));
    guest.send(&data(id, Channel::Stdout, b"hello")).await;
    guest.send(&exited(id, 1_000_000)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"hello");
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
}

#[tokio::test]
async fn a_hang_up_within_a_frame_is_an_error_behind_what_had_come() {
    let printed = [&b"begun"[..], &pattern(100_000)].concat();
    // In the first frame's header and payload, in the large payload (with more
    // and with less to come than is read past the buffer), between the frames,
    // in the last frame.
    for cut in [3, 10, 40_000, 90_000, 100_021, 100_040] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id();
        let mut sent = [
            data(id, Channel::Stdout, &printed[..5]),
            data(id, Channel::Stdout, &printed[5..]),
            ends(id),
            exited(id, printed.len() as u64),
        ]
        .concat();
        assert!(cut < sent.len());
        sent.truncate(cut);
        let sending = async {
            guest.send(&sent).await;
            drop(guest);
        };
        let ((), (bytes, end)) = tokio::join!(sending, read_to_end(&mut stream));
        assert_eq!(end.unwrap_err(), Lost::Closed, "cut at {cut}");
        assert!(printed.starts_with(&bytes), "cut at {cut}");
        let headers = 8 * cut.div_ceil(13).min(2);
        assert!(
            bytes.len() >= cut.min(100_021).saturating_sub(headers),
            "what had come is lost: {} bytes are left of {cut}",
            bytes.len()
        );
        assert_eq!(
            session.open(&Request::Ping).unwrap_err(),
            OpenError::Lost(Lost::Closed)
        );
    }
}

#[tokio::test]
async fn a_dropped_stream_is_cancelled_and_late_data_is_ignored() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id(), stream.input());
    drop(stream);
    assert_eq!(guest.hear().await, Some(Heard::Cancel(id)));
    // More than a window: nobody will give credit for it any more.
    for size in [1000, 200_000] {
        let frame = data(id, Channel::Stdout, &vec![b'x'; size]);
        for _ in 0..3 * WINDOW as usize / size {
            guest.send(&frame).await;
        }
    }
    guest.send(&started(id)).await;
    guest.send(&ends(id)).await;
    settle(&session, &mut guest).await;
    guest.send(&exited(id, 1)).await;
    settle(&session, &mut guest).await;
    assert!(!input.write(Bytes::from_static(b"x")).await);
    // Its close was its end.
    guest.send(&data(id, Channel::Stdout, b"x")).await;
    let mut lost = session.lost();
    let lost = *lost.wait_for(Option::is_some).await.unwrap();
    let expected = Lost::Violation(WireError::BadStream(id.get()));
    assert_eq!(lost, Some(expected));
}

#[tokio::test]
async fn a_stream_that_is_over_is_not_cancelled() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    guest.send(&exited(stream.id(), 0)).await;
    settle(&session, &mut guest).await;
    drop(stream);
    // The next thing that the guest hears is the ping, and no cancel.
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_stalled_reader_stalls_its_own_stream_only() {
    let (session, mut guest) = connect().await;
    let mut stalled = open(&session, &mut guest).await;
    let mut other = open(&session, &mut guest).await;
    // All that the guest may send to a reader that does not read.
    let frame = data(stalled.id(), Channel::Stdout, &vec![b'x'; 65_536]);
    for _ in 0..WINDOW / 65_536 {
        guest.send(&frame).await;
    }
    let hello = data(other.id(), Channel::Stdout, b"hello");
    guest.send(&hello).await;
    guest.send(&ends(other.id())).await;
    guest.send(&exited(other.id(), 5)).await;
    let (bytes, end) = read_to_end(&mut other).await;
    assert_eq!(bytes, b"hello");
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");

    // No credit has come; it comes when the reader reads.
    settle(&session, &mut guest).await;
    let mut read = 0;
    while read < WINDOW as usize {
        let Ok(StreamEvent::Data(Channel::Stdout, bytes)) = stalled.next().await else {
            panic!("the data is lost");
        };
        read += bytes.len();
    }
    let mut granted = 0;
    while granted < WINDOW {
        match guest.hear().await {
            Some(Heard::Credit(id, Channel::Stdout, bytes)) if id == stalled.id() => {
                granted += bytes;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(granted, WINDOW);
}

#[tokio::test]
async fn a_flood_on_one_output_does_not_hide_the_other() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let problem = data(stream.id(), Channel::Stderr, b"problem");
    guest.send(&problem).await;
    let chatter = data(stream.id(), Channel::Stdout, b"chatter");
    for _ in 0..4 {
        guest.send(&chatter).await;
        settle(&session, &mut guest).await;
        if let Ok(StreamEvent::Data(Channel::Stderr, bytes)) = stream.next().await {
            assert_eq!(bytes, "problem");
            return;
        }
    }
    panic!("standard error waits for a pause of standard output");
}

#[tokio::test]
async fn input_waits_for_credit() {
    let (session, mut guest) = connect_with_window(10).await;
    let stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id(), stream.input());
    let write = tokio::spawn({
        let input = input.clone();
        async move {
            let all = input.write(Bytes::from(pattern(25))).await;
            input.end();
            all
        }
    });
    let part = |range: std::ops::Range<usize>| Heard::Data(id, pattern(25)[range].to_vec());
    assert_eq!(guest.hear().await, Some(part(0..10)));
    // The next thing that the guest hears is the ping, and no data.
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    guest.send(&credit(id, 9)).await;
    assert_eq!(guest.hear().await, Some(part(10..19)));
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    guest.send(&credit(id, 1000)).await;
    assert_eq!(guest.hear().await, Some(part(19..25)));
    assert_eq!(guest.hear().await, Some(Heard::End(id)));
    assert!(write.await.unwrap(), "everything was written");
    assert!(!input.write(Bytes::from_static(b"x")).await, "it has ended");
}

#[tokio::test]
async fn input_that_waits_is_told_when_nobody_reads_it_any_more() {
    // The process ends, or the guest does.
    for process_only in [true, false] {
        let (session, mut guest) = connect_with_window(0).await;
        let stream = open(&session, &mut guest).await;
        let input = stream.input();
        let write = tokio::spawn(async move { input.write(Bytes::from_static(b"x")).await });
        settle(&session, &mut guest).await;
        assert!(!write.is_finished());
        if process_only {
            guest.send(&exited(stream.id(), 0)).await;
        } else {
            drop(guest);
        }
        assert!(!write.await.unwrap());
    }
}

/// Credit is a promise to read. The host must not hold what a guest promised
/// to read and does not.
#[tokio::test]
async fn a_guest_that_grants_credit_and_does_not_read_stops_the_input() {
    const CHUNK: &[u8] = &[0; 256 * 1024];
    const GRANTS: usize = 200;
    let (session, mut guest) = connect_with_window(0).await;
    let stream = open(&session, &mut guest).await;
    let input = stream.input();
    let write = tokio::spawn(async move {
        let mut written = 0;
        while input.write(Bytes::from_static(CHUNK)).await {
            written += CHUNK.len();
        }
        written
    });
    // The guest answers them, and never reads them.
    let pings = (0..GRANTS).map(|_| session.open(&Request::Ping).unwrap());
    for mut ping in pings.collect::<Vec<_>>() {
        let grant = credit(stream.id(), CHUNK.len() as u32);
        guest.send(&grant).await;
        guest.send(&close(ping.id(), &Outcome::Pong)).await;
        // More credit than may be outstanding is the end of the link.
        if ping.next().await.is_err() {
            break;
        }
    }
    drop(session);
    let written = write.await.unwrap();
    assert!(
        written <= MAX_WINDOW as usize,
        "{written} bytes wait for a guest that does not read"
    );
}

/// A program with one thread must be able to go on, if only to end the VM.
#[tokio::test]
async fn a_guest_that_never_pauses_does_not_stop_a_runtime_of_one_thread() {
    const MOST: usize = 128 * 1024 * 1024;
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let nonsense = ends(stream.id()).repeat(8192);
    let enough = Arc::new(AtomicBool::new(false));
    let (under_way, is_under_way) = tokio::sync::oneshot::channel();
    let flood = tokio::task::spawn_blocking({
        use std::io::Write;
        let mut link = guest.link.into_std().unwrap();
        link.set_nonblocking(false).unwrap();
        let enough = enough.clone();
        move || {
            let (mut sent, mut under_way) = (0, Some(under_way));
            while sent < MOST && !enough.load(Ordering::Relaxed) {
                match link.write(&nonsense) {
                    Ok(count) => sent += count,
                    Err(_) => break,
                }
                // The reader must have taken some of it.
                if sent > 1024 * 1024 {
                    under_way.take().map(|under_way| under_way.send(()));
                }
            }
            sent
        }
    });
    // An error means that the reader had enough of the nonsense, which is fine.
    let _ = is_under_way.await;
    enough.store(true, Ordering::Relaxed);
    drop((stream, session));
    let sent = flood.await.unwrap();
    assert!(
        sent < MOST,
        "nothing else ran before the guest was finished"
    );
}

#[tokio::test]
async fn more_streams_than_a_link_can_have_are_refused_until_one_is_closed() {
    let (session, mut guest) = connect().await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        streams.push(open(&session, &mut guest).await);
    }
    assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Full);
    // A cancelled stream keeps its place until the guest has closed it.
    let cancelled = streams.pop().unwrap();
    let id = cancelled.id();
    drop(cancelled);
    assert_eq!(guest.hear().await, Some(Heard::Cancel(id)));
    assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Full);

    guest.send(&exited(streams[0].id(), 0)).await;
    let (_, end) = read_to_end(&mut streams[0]).await;
    assert!(end.is_ok(), "{end:?}");
    open(&session, &mut guest).await;
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_refused_and_takes_no_place() {
    let (session, mut guest) = connect().await;
    let cwd = vec![b'x'; MAX_PAYLOAD as usize];
    for _ in 0..=MAX_STREAMS {
        let request = Request::Exec(Exec {
            argv: Packed::default(),
            env: Packed::default(),
            cwd: &cwd,
            stdin: Stdin::Empty,
        });
        assert_eq!(session.open(&request).unwrap_err(), OpenError::TooLarge);
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_failure_is_told_in_words_that_are_safe_to_print() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let failure = Failure::new(FailureKind::NotFound, Stage::Exec, "\x1b[2Jnothing\r");
    let failed = close(stream.id(), &Outcome::Failed(failure));
    guest.send(&failed).await;
    let (_, end) = read_to_end(&mut stream).await;
    let Ok(Closing::Failed(failure)) = end else {
        panic!("{end:?}");
    };
    assert!(!failure.text.chars().any(char::is_control), "{failure:?}");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_dropped_session_hangs_up_and_fails_its_streams() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    drop(session);
    let (_, end) = read_to_end(&mut stream).await;
    assert_eq!(end.unwrap_err(), Lost::Closed);
    while guest.hear().await.is_some() {}
}

/// Frames that are nearly right, which get further than noise does.
fn nearly_a_frame() -> impl Strategy<Value = Vec<u8>> {
    let kinds = vec![
        0x01, 0x02, 0x03, 0x04, 0x05, 0x10, 0x11, 0x12, 0x20, 0x21, 0x22, 0x30, 0x31, 0x32, 0x40,
    ];
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        Just(vec![0, 9]),
        Just(vec![1]),
        any::<u16>().prop_map(|credit| u32::from(credit).to_le_bytes().to_vec()),
    ];
    let length = prop::option::weighted(0.05, any::<u32>());
    (prop::sample::select(kinds), 0..4u8, payload, length).prop_map(
        |(kind, stream, payload, length)| {
            let length = length.unwrap_or(payload.len() as u32);
            let mut frame = length.to_le_bytes().to_vec();
            frame.extend([stream, 0, 0, kind]);
            frame.extend(payload);
            frame
        },
    )
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => nearly_a_frame(),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ];
    prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn whatever_a_guest_sends_every_wait_has_an_end(noise in noise()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let all = async {
            let (session, mut guest) = connect().await;
            let mut streams = Vec::new();
            for _ in 0..3 {
                streams.push(open(&session, &mut guest).await);
            }
            guest.send(&noise).await;
            drop(guest);
            let mut lost = session.lost();
            let lost = lost.wait_for(Option::is_some).await.unwrap().unwrap();
            for stream in &mut streams {
                let (bytes, end) = read_to_end(stream).await;
                assert!(bytes.len() <= noise.len());
                // An exit may have been miscounted before the link was lost.
                let miscounted = Lost::Violation(WireError::Malformed);
                assert!(end.err().is_none_or(|told| told == lost || told == miscounted));
                assert!(!stream.input().write(Bytes::from_static(&[0; 100_000])).await);
            }
            assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Lost(lost));
        };
        // It is an error of the session if this takes more than a moment.
        let in_time = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), all).await
        });
        prop_assert!(in_time.is_ok(), "somebody waits forever");
    }
}

/// How much memory this process has, in KiB: `VmRSS` of proc(5).
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}
