//! Programs that are lent a session.
//!
//! A visitor is a session of its own, or frames that are written by hand. The
//! agent is the guest of the other tests.

use super::*;
use crate::session::relay;

/// The program that has the session, and the guest that it talks to.
async fn owner() -> (Arc<Session>, Guest) {
    let (session, guest) = connect_port().await;
    (Arc::new(session), guest)
}

/// A socket to the owner.
fn door(session: &Arc<Session>) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    tokio::spawn(relay(theirs, session.clone()));
    ours
}

async fn visit(session: &Arc<Session>) -> Session {
    let link = Link::socket(door(session));
    Session::connect(link, None).await.unwrap()
}

/// A visitor whose frames are written by hand.
struct Caller {
    link: UnixStream,
    decoder: Decoder,
    unread: Vec<u8>,
}

/// What a visitor is told, in few words.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Hello([u8; 16]),
    Started,
    Closed(Result<(), FailureKind>),
    Data(usize),
    Other,
}

impl Caller {
    fn new(session: &Arc<Session>) -> Self {
        Self {
            link: door(session),
            decoder: Decoder::new(Peer::Guest),
            unread: Vec::new(),
        }
    }

    /// One that has introduced itself.
    async fn greeted(session: &Arc<Session>, window: u32) -> Self {
        let mut caller = Self::new(session);
        caller.send(&hello(window, [0; 16])).await;
        assert_eq!(caller.hear().await, Some(Told::Hello(BOOT_ID)));
        caller
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.link.write_all(bytes).await.unwrap();
    }

    async fn ask(&mut self, number: u32, request: &Request<'_>) -> StreamId {
        let id = StreamId::new(number).unwrap();
        let frame = frames(|out| encode::open(out, id, request).unwrap());
        self.send(&frame).await;
        id
    }

    /// The next word on whatever stream; none if the owner hung up.
    async fn hear(&mut self) -> Option<Told> {
        loop {
            let mut input = &self.unread[..];
            let told = self
                .decoder
                .decode(&mut input)
                .unwrap()
                .map(|item| match item {
                    Item::Hello(hello) => Told::Hello(hello.boot_id),
                    Item::Event {
                        event: Event::Started { .. },
                        ..
                    } => Told::Started,
                    Item::Close {
                        outcome: Outcome::Failed(failure),
                        ..
                    } => Told::Closed(Err(failure.kind)),
                    Item::Close { .. } => Told::Closed(Ok(())),
                    Item::Data { bytes, .. } => Told::Data(bytes.len()),
                    _ => Told::Other,
                });
            let taken = self.unread.len() - input.len();
            self.unread.drain(..taken);
            if told.is_some() {
                return told;
            }
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }
}

/// A visitor's process: its end of the stream, and the guest's id of it.
async fn open_for(visitor: &Session, guest: &mut Guest, ticket: u64) -> (Stream, StreamId) {
    let stream = visitor.open(&Request::Start(start(ticket))).unwrap();
    match guest.hear().await {
        Some(Heard::Start(id, told)) if told == ticket => (stream, id),
        other => panic!("{other:?}"),
    }
}

/// The same for one that the guest says has started.
async fn start_for(visitor: &Session, guest: &mut Guest, ticket: u64) -> (Stream, StreamId) {
    let (mut stream, id) = open_for(visitor, guest, ticket).await;
    guest.send(&started(id)).await;
    let event = stream.next_but_output().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
    (stream, id)
}

/// Returns when the visitor's words have reached the guest, and its answers the
/// visitor. Nothing else may come from the host.
async fn settle_visit(visitor: &Session, guest: &mut Guest) {
    let mut ping = visitor.open(&Request::Ping).unwrap();
    let Some(Heard::Open(id)) = guest.hear().await else {
        panic!("no ping came");
    };
    guest.send(&close(id, &Outcome::Pong)).await;
    let answer = ping.next().await;
    assert!(
        matches!(answer, Ok(StreamEvent::Closed(Closing::Pong))),
        "{answer:?}"
    );
}

async fn expect_exit(stream: &mut Stream) -> Vec<u8> {
    let (bytes, end) = read_to_end(stream).await;
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
    bytes
}

#[tokio::test]
async fn a_visitor_learns_what_the_agent_said_of_itself() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    assert_eq!(visitor.peer(), session.peer());
    settle_visit(&visitor, &mut guest).await;
}

#[tokio::test]
async fn a_visitor_runs_a_process_with_input_and_output() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (mut stream, id) = open_for(&visitor, &mut guest, 77).await;
    let input = stream.input();
    // More than the window of either link.
    const COUNT: usize = 5 * GUEST_WINDOW as usize;
    let write = tokio::spawn(async move {
        let all = input.write(Bytes::from(pattern(COUNT))).await;
        input.end();
        all
    });
    let (mut heard, mut granted) = (Vec::new(), 0);
    loop {
        match guest.hear().await {
            Some(Heard::Data(_, bytes)) => heard.extend(bytes),
            Some(Heard::End(end)) => {
                assert_eq!(end, id);
                break;
            }
            other => panic!("{other:?}"),
        }
        if heard.len() - granted > GUEST_WINDOW as usize / 2 {
            let grant = heard.len() - granted;
            guest.send(&credit(id, grant as u32)).await;
            granted = heard.len();
        }
    }
    assert!(write.await.unwrap());
    assert!(heard == pattern(COUNT), "{} bytes arrived", heard.len());

    guest.send(&started(id)).await;
    let event = stream.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
    guest.send(&data(id, Channel::Stderr, b"warning")).await;
    let event = stream.next().await;
    let Ok(StreamEvent::Data(Channel::Stderr, bytes)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(bytes, "warning");
    let bytes = pattern(700_000);
    for part in bytes.chunks(200_001) {
        guest.send(&data(id, Channel::Stdout, part)).await;
    }
    guest.send(&ends(id)).await;
    let exit = Exit {
        stderr_bytes: 7,
        ..exit(700_000)
    };
    guest.send(&close(id, &Outcome::Exited(exit))).await;
    let (read, end) = read_to_end(&mut stream).await;
    assert!(read == bytes, "{} bytes arrived", read.len());
    let Ok(Closing::Exited(told)) = end else {
        panic!("{end:?}");
    };
    assert_eq!(told, exit);
}

#[tokio::test]
async fn a_visitors_input_waits_for_the_guest() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (stream, id) = open_for(&visitor, &mut guest, 1).await;
    let input = stream.input();
    let window = GUEST_WINDOW as usize;
    let write = tokio::spawn(async move { input.write(pattern(10 * window).into()).await });
    guest.hear_data(id, window).await;
    for _ in 0..5 {
        settle_visit(&visitor, &mut guest).await;
        settle(&session, &mut guest).await;
    }
    assert!(!write.is_finished(), "somebody holds all that input");
    guest.send(&exited(id, 0)).await;
    assert!(!write.await.unwrap());
}

#[tokio::test]
async fn every_answer_reaches_the_visitor() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let process = Selector::Id(ID);
    let failure = Failure::new(FailureKind::Conflict, Stage::Process, "it still runs");
    for (request, outcome) in [
        (Request::Ping, Outcome::Pong),
        (Request::Kill { process }, Outcome::Exited(exit(1000))),
        (Request::Detach { process }, Outcome::Done),
        (Request::Forget { process }, Outcome::Failed(failure)),
        (Request::Signal { process, signal: 9 }, Outcome::Done),
        (
            Request::List { after: 3 },
            Outcome::EndOfList { more: true },
        ),
    ] {
        let mut stream = visitor.open(&request).unwrap();
        let Some(Heard::Open(id)) = guest.hear().await else {
            panic!("{request:?} did not arrive");
        };
        let lists = matches!(request, Request::List { .. });
        if lists {
            guest.send(&listed(id, 4)).await;
        }
        guest.send(&close(id, &outcome)).await;
        if lists {
            let event = stream.next().await;
            let Ok(StreamEvent::Listed(entry)) = event else {
                panic!("{event:?}");
            };
            assert_eq!((entry.id, entry.pid, &*entry.tag), (4, 104, "tag"));
        }
        let (_, end) = read_to_end(&mut stream).await;
        let right = match (&outcome, end.unwrap()) {
            (Outcome::Failed(sent), Closing::Failed(told)) => {
                told.kind == sent.kind && told.stage == sent.stage && told.text == sent.text
            }
            (Outcome::Exited(sent), Closing::Exited(told)) => told == *sent,
            (Outcome::Pong, Closing::Pong)
            | (Outcome::Done, Closing::Done)
            | (Outcome::EndOfList { more: true }, Closing::EndOfList { more: true }) => true,
            _ => false,
        };
        assert!(right, "{request:?}");
    }
    let background = Start {
        lifetime: Lifetime::Background,
        ..start(5)
    };
    let mut stream = visitor.open(&Request::Start(background)).unwrap();
    let Some(Heard::Start(id, 5)) = guest.hear().await else {
        panic!("it did not arrive");
    };
    let spawned = Outcome::Spawned { id: ID, pid: PID };
    guest.send(&close(id, &spawned)).await;
    let event = stream.next().await;
    assert!(
        matches!(
            event,
            Ok(StreamEvent::Closed(Closing::Spawned { id: ID, pid: PID }))
        ),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_visitor_watches_a_process_with_gaps() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let asked = Attach {
        stdout: Some(Position {
            offset: 1000,
            window: WINDOW,
        }),
        stderr: None,
        ..attach(Selector::Tag("a tag"), true)
    };
    let mut stream = visitor.open(&Request::Attach(asked)).unwrap();
    let Some(Heard::Attach(id, heard)) = guest.hear().await else {
        panic!("it did not arrive");
    };
    assert_eq!(heard, asked);
    let stdin = Position {
        offset: 50,
        window: 10,
    };
    guest.send(&attached(id, 900, 0, Some(stdin))).await;
    let event = stream.next().await;
    let Ok(StreamEvent::Attached(told)) = event else {
        panic!("{event:?}");
    };
    assert_eq!((told.stdout, told.stdin.unwrap().offset), (900, 50));
    let sent = [
        gap(id, Output::Stdout, 100),
        data(id, Channel::Stdout, b"here"),
        gap(id, Output::Stdout, 5),
        frames(|out| encode::end(out, id, Channel::Stdout)),
    ];
    guest.send(&sent.concat()).await;
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(match stream.next().await {
            Ok(StreamEvent::Gap(Channel::Stdout, bytes)) => (bytes, None),
            Ok(StreamEvent::Data(Channel::Stdout, bytes)) => (0, Some(bytes)),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(told, [(100, None), (0, Some("here".into())), (5, None)]);
    assert!(stream.input().write(Bytes::from_static(b"input")).await);
    assert_eq!(guest.hear_data(id, 5).await, b"input");
    guest.send(&exited(id, 1009)).await;
    assert_eq!(expect_exit(&mut stream).await, b"");
}

/// What a visitor asks for is between it and the owner, and none of the guest's
/// business.
#[tokio::test]
async fn a_visitor_with_a_small_window_gets_everything_in_pieces_that_fit() {
    let (session, mut guest) = owner().await;
    let mut caller = Caller::greeted(&session, 100).await;
    let id = caller.ask(9, &exec()).await;
    let Some(Heard::Start(agents, _)) = guest.hear().await else {
        panic!("it did not arrive");
    };
    guest.send(&started(agents)).await;
    assert_eq!(caller.hear().await, Some(Told::Started));
    guest.send(&data(agents, Channel::Stdout, &[1; 1000])).await;
    guest.send(&ends(agents)).await;
    guest.send(&exited(agents, 1000)).await;
    let mut received = 0;
    while received < 1000 {
        match caller.hear().await {
            Some(Told::Data(count)) => {
                received += count;
                assert!(count <= 100, "{count} bytes at once");
                let grant = frames(|out| encode::credit(out, id, Channel::Stdout, count as u32));
                caller.send(&grant).await;
            }
            Some(Told::Other) => {}
            other => panic!("{other:?} after {received} bytes"),
        }
    }
    while let Some(told) = caller.hear().await {
        if told == Told::Closed(Ok(())) {
            break;
        }
        assert_eq!(told, Told::Other);
    }
}

/// Sends to a stream, at first so much, until no more credit comes for it: how
/// much was sent. It is given up after a lot.
async fn fill(session: &Session, guest: &mut Guest, stream: StreamId, available: u32) -> usize {
    const MOST: usize = 64 * 1024 * 1024;
    const PIECE: usize = 65_536;
    let frame = data(stream, Channel::Stdout, &[b'x'; PIECE]);
    let (mut sent, mut available, mut quiet) = (0, available as usize, 0);
    // Whoever takes part is a task of this thread, and each round lets all of
    // them run.
    while quiet < 20 && sent < MOST {
        while available >= PIECE {
            guest.send(&frame).await;
            available -= PIECE;
            sent += PIECE;
            quiet = 0;
        }
        available += hear_credit(session, guest, stream, Channel::Stdout).await as usize;
        quiet += 1;
    }
    sent
}

#[tokio::test]
async fn a_visitor_that_does_not_read_stops_only_its_own_stream() {
    let (session, mut guest) = owner().await;
    let lazy = visit(&session).await;
    let (mut stalled, stalled_id) = start_for(&lazy, &mut guest, 1).await;
    // A window at the visitor's, and one at the owner's, or nearly: credit
    // comes for half a window at once.
    let sent = fill(&session, &mut guest, stalled_id, WINDOW).await;
    assert!(sent <= 2 * WINDOW as usize, "{sent} bytes were taken");
    assert!(
        sent >= 3 * WINDOW as usize / 2,
        "only {sent} bytes were taken"
    );

    // The same visitor, another one, and the owner.
    let other = visit(&session).await;
    for (opener, ticket) in [(&lazy, 2), (&other, 3), (&*session, 4)] {
        let (mut stream, id) = start_for(opener, &mut guest, ticket).await;
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        guest.send(&ends(id)).await;
        guest.send(&exited(id, 5)).await;
        assert_eq!(expect_exit(&mut stream).await, b"hello");
    }

    guest.send(&ends(stalled_id)).await;
    guest.send(&exited(stalled_id, sent as u64)).await;
    assert_eq!(expect_exit(&mut stalled).await.len(), sent);
}

#[tokio::test]
async fn one_output_that_a_visitor_does_not_read_does_not_stop_the_other() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (stream, id) = start_for(&visitor, &mut guest, 1).await;
    let mut stderr = stream.output(Channel::Stderr);
    fill(&session, &mut guest, id, WINDOW).await;
    guest.send(&data(id, Channel::Stderr, b"problem")).await;
    let read = parts::read(&mut stderr).await;
    assert_eq!(read, parts::Read::Data("problem".into()));
}

/// Credit is a promise to read, and a visitor need not keep it.
#[tokio::test]
async fn a_visitor_that_grants_credit_and_does_not_read_is_not_hoarded_for() {
    let (session, mut guest) = owner().await;
    let mut caller = Caller::greeted(&session, WINDOW).await;
    let id = caller.ask(1, &exec()).await;
    let Some(Heard::Start(agents, _)) = guest.hear().await else {
        panic!("it did not arrive");
    };
    guest.send(&started(agents)).await;
    assert_eq!(caller.hear().await, Some(Told::Started));
    let mut sent = fill(&session, &mut guest, agents, WINDOW).await;
    for _ in 0..16 {
        let grant = frames(|out| encode::credit(out, id, Channel::Stdout, 512 * 1024));
        caller.send(&grant).await;
        sent += fill(&session, &mut guest, agents, 0).await;
    }
    assert!(
        sent <= 6 * 1024 * 1024,
        "{sent} bytes wait for a visitor that does not read"
    );
}

#[tokio::test]
async fn a_visitor_that_asks_and_asks_and_does_not_read_is_shown_out() {
    let (session, mut guest) = owner().await;
    let mut caller = Caller::greeted(&session, WINDOW).await;
    // Each one is refused with a few words.
    let id = StreamId::new(1).unwrap();
    let refused = Request::PowerOff { grace_ms: 0 };
    let frame = frames(|out| encode::open(out, id, &refused).unwrap());
    let many = frame.repeat(1000);
    let mut sent = 0;
    while sent < 64 * 1024 * 1024 && caller.link.write_all(&many).await.is_ok() {
        sent += many.len();
    }
    assert!(sent < 16 * 1024 * 1024, "{sent} bytes were taken");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_visitor_that_leaves_takes_its_streams_along() {
    for breach in [false, true] {
        let (session, mut guest) = owner().await;
        let mut kept = open(&session, &mut guest).await;
        let mut caller = Caller::greeted(&session, WINDOW).await;
        let mut ids = Vec::new();
        for number in 1..4 {
            caller.ask(number, &exec()).await;
            match guest.hear().await {
                Some(Heard::Start(id, _)) => ids.push(id),
                other => panic!("{other:?}"),
            }
        }
        if breach {
            caller.send(&[0xff; 100]).await;
            while caller.hear().await.is_some() {}
        }
        drop(caller);
        for _ in 0..3 {
            match guest.hear().await {
                Some(Heard::Cancel(id)) => ids.retain(|other| *other != id),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ids, []);
        guest.send(&data(kept.id, Channel::Stdout, b"hello")).await;
        guest.send(&ends(kept.id)).await;
        guest.send(&exited(kept.id, 5)).await;
        assert_eq!(expect_exit(&mut kept).await, b"hello");
    }
}

#[tokio::test]
async fn a_stream_that_a_visitor_drops_is_cancelled_and_its_place_is_free() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    for _ in 0..3 {
        let (stream, id) = open_for(&visitor, &mut guest, 1).await;
        drop(stream);
        assert_eq!(guest.hear().await, Some(Heard::Cancel(id)));
        // What is on its way is of no interest.
        guest.send(&data(id, Channel::Stdout, &[0; 1000])).await;
        guest.send(&exited(id, 2000)).await;
        settle_visit(&visitor, &mut guest).await;
    }
}

/// It wants to hear of the end, and need not read what comes before.
#[tokio::test]
async fn a_visitor_that_cancels_hears_of_the_end_without_reading() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (mut stream, id) = start_for(&visitor, &mut guest, 1).await;
    let sent = fill(&session, &mut guest, id, WINDOW).await;
    stream.cancel();
    loop {
        match guest.hear().await {
            // What the owner held for the visitor is of no use any more.
            Some(Heard::Credit(..)) => {}
            heard => {
                assert_eq!(heard, Some(Heard::Cancel(id)));
                break;
            }
        }
    }
    guest.send(&exited(id, sent as u64 + 1000)).await;
    let end = stream.next_but_output().await;
    assert!(
        matches!(end, Ok(StreamEvent::Closed(Closing::Exited(_)))),
        "{end:?}"
    );
}

/// The same when the process had ended before, and only its output is left.
#[tokio::test]
async fn a_visitor_that_cancels_late_hears_of_the_end_without_reading() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (mut stream, id) = start_for(&visitor, &mut guest, 1).await;
    let sent = fill(&session, &mut guest, id, WINDOW).await;
    guest.send(&ends(id)).await;
    guest.send(&exited(id, sent as u64)).await;
    settle_visit(&visitor, &mut guest).await;
    stream.cancel();
    let end = stream.next_but_output().await;
    assert!(
        matches!(end, Ok(StreamEvent::Closed(Closing::Exited(_)))),
        "{end:?}"
    );
    settle_visit(&visitor, &mut guest).await;
}

#[tokio::test]
async fn a_visitor_does_not_notice_that_the_owners_link_is_made_anew() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (mut stream, id) = open_for(&visitor, &mut guest, 31).await;
    let input = stream.input();
    assert!(input.write(Bytes::from_static(b"some input")).await);
    guest.hear_data(id, 10).await;
    let mut printed = 0;
    for round in 0..4 {
        session.drop_link();
        guest.relink(GUEST_WINDOW).await;
        let resume = guest.hear_resume(id).await;
        assert_eq!(resume.ticket, 31);
        assert_eq!(resume.stdout.offset, printed);
        let stdin = Position {
            offset: 2 * round,
            window: GUEST_WINDOW,
        };
        guest.send(&attached(id, printed, 0, Some(stdin))).await;
        let rest = &b"some input"[2 * round as usize..];
        assert_eq!(guest.hear_data(id, rest.len()).await, rest);
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        printed += 5;
        settle(&session, &mut guest).await;
    }
    guest.send(&ends(id)).await;
    guest.send(&exited(id, printed)).await;
    // The word that it had started was lost, and is told once.
    let event = stream.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
    assert_eq!(expect_exit(&mut stream).await, b"hello".repeat(4));
    settle_visit(&visitor, &mut guest).await;
}

#[tokio::test]
async fn what_only_the_owner_may_do_is_refused() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let nowhere = Position {
        offset: 0,
        window: WINDOW,
    };
    for request in [
        Request::PowerOff { grace_ms: 0 },
        Request::Resume(Resume {
            ticket: TICKET,
            stdout: nowhere,
            stderr: nowhere,
        }),
    ] {
        let mut stream = visitor.open(&request).unwrap();
        let (_, end) = read_to_end(&mut stream).await;
        let Ok(Closing::Failed(failed)) = end else {
            panic!("{end:?}");
        };
        assert_eq!(failed.kind, FailureKind::Denied);
    }
    // Nothing of this came to the guest.
    settle_visit(&visitor, &mut guest).await;
}

#[tokio::test]
async fn a_request_that_the_owner_does_not_know_is_refused() {
    let (session, mut guest) = owner().await;
    let mut caller = Caller::greeted(&session, WINDOW).await;
    let id = StreamId::new(1).unwrap();
    caller
        .send(&frame(Kind::Open, Some(id), &[0x7f, 1, 2, 3]))
        .await;
    let unsupported = Told::Closed(Err(FailureKind::Unsupported));
    assert_eq!(caller.hear().await, Some(unsupported));
    caller.ask(1, &Request::Ping).await;
    assert!(matches!(guest.hear().await, Some(Heard::Open(_))));
}

#[tokio::test]
async fn visitors_do_not_see_each_others_streams() {
    let (session, mut guest) = owner().await;
    let (first, second) = (visit(&session).await, visit(&session).await);
    let (mut one, one_id) = start_for(&first, &mut guest, 1).await;
    let (mut two, two_id) = start_for(&second, &mut guest, 2).await;
    // For both it is the first stream, for the guest they are two.
    assert_eq!(one.id, two.id);
    assert_ne!(one_id, two_id);
    assert!(one.input().write(Bytes::from_static(b"for one")).await);
    assert_eq!(guest.hear_data(one_id, 7).await, b"for one");
    assert!(two.input().write(Bytes::from_static(b"for two")).await);
    assert_eq!(guest.hear_data(two_id, 7).await, b"for two");
    for (id, text) in [(two_id, b"two"), (one_id, b"one")] {
        guest.send(&data(id, Channel::Stdout, text)).await;
        guest.send(&ends(id)).await;
        guest.send(&exited(id, 3)).await;
    }
    assert_eq!(expect_exit(&mut one).await, b"one");
    assert_eq!(expect_exit(&mut two).await, b"two");
}

#[tokio::test]
async fn a_visitor_that_breaks_the_protocol_ends_its_own_visit_only() {
    let id = StreamId::new(1).unwrap();
    let start = frames(|out| encode::open(out, id, &exec()).unwrap());
    let start_again = start.clone();
    let input = data(id, Channel::Stdin, &[0; 1000]);
    // The owner has passed a window of it on, and grants as much again.
    let too_much = input.repeat(3 * GUEST_WINDOW as usize / 1000);
    let credit = |bytes| frames(|out| encode::credit(out, id, Channel::Stdout, bytes));
    for breach in [
        vec![0; 64],
        vec![0xff; 64],
        hello(WINDOW, [0; 16]),
        data(id, Channel::Stdout, b"x"),
        close(id, &Outcome::Pong),
        start_again,
        too_much,
        credit(u32::MAX),
    ] {
        let (session, mut guest) = owner().await;
        let other = visit(&session).await;
        let mut caller = Caller::greeted(&session, WINDOW).await;
        caller.send(&start).await;
        let Some(Heard::Start(agents, _)) = guest.hear().await else {
            panic!("it did not arrive");
        };
        // The owner may hang up before it is all sent.
        let _ = caller.link.write_all(&breach).await;
        while caller.hear().await.is_some() {}
        loop {
            match guest.hear().await {
                Some(Heard::Data(..)) => {}
                heard => {
                    assert_eq!(heard, Some(Heard::Cancel(agents)));
                    break;
                }
            }
        }
        settle_visit(&other, &mut guest).await;
        settle(&session, &mut guest).await;
    }
}

#[tokio::test]
async fn who_does_not_say_hello_first_is_shown_out() {
    let (session, mut guest) = owner().await;
    let mut caller = Caller::new(&session);
    caller.ask(1, &Request::Ping).await;
    assert_eq!(caller.hear().await, None);
    settle(&session, &mut guest).await;
}

/// A visitor may send on a stream whose close is on its way to it.
#[tokio::test(flavor = "multi_thread")]
async fn words_that_cross_with_a_close_are_no_breach() {
    let (session, mut guest) = owner().await;
    let mut caller = Caller::greeted(&session, WINDOW).await;
    let id = caller.ask(1, &exec()).await;
    let Some(Heard::Start(agents, _)) = guest.hear().await else {
        panic!("it did not arrive");
    };
    guest.send(&exited(agents, 0)).await;
    assert_eq!(caller.hear().await, Some(Told::Closed(Ok(()))));
    let late = frames(|out| {
        out.extend(data(id, Channel::Stdin, b"late"));
        encode::credit(out, id, Channel::Stdout, 1);
        encode::end(out, id, Channel::Stdin);
        encode::cancel(out, id);
        encode::ack(out, id);
    });
    caller.send(&late).await;
    // The number may be used again.
    for _ in 0..1000 {
        caller.ask(1, &Request::Ping).await;
        let Some(Heard::Open(ping)) = guest.hear().await else {
            panic!("the ping did not arrive");
        };
        guest.send(&close(ping, &Outcome::Pong)).await;
        assert_eq!(caller.hear().await, Some(Told::Closed(Ok(()))));
        let ack = frames(|out| encode::ack(out, id));
        caller.send(&ack).await;
    }
}

/// The owner makes texts of the guest safe, which may make them longer.
#[tokio::test]
async fn a_failure_in_words_that_are_not_safe_reaches_the_visitor() {
    let (session, mut guest) = owner().await;
    let visitor = visit(&session).await;
    let (mut stream, id) = open_for(&visitor, &mut guest, 1).await;
    let text = "\x1b".repeat(vmcell_wire::limits::MAX_FAILURE_TEXT);
    let failure = Failure::new(FailureKind::NotFound, Stage::Exec, &text);
    guest.send(&close(id, &Outcome::Failed(failure))).await;
    let (_, end) = read_to_end(&mut stream).await;
    let Ok(Closing::Failed(failed)) = end else {
        panic!("{end:?}");
    };
    assert_eq!(failed.kind, FailureKind::NotFound);
    settle_visit(&visitor, &mut guest).await;
}

#[tokio::test]
async fn an_agent_with_a_name_that_is_not_safe_can_be_visited() {
    let (host, guest) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(guest);
    let name = "\x1b".repeat(vmcell_wire::limits::MAX_BUILD);
    let evil = Hello::new(&name, GUEST_WINDOW, BOOT_ID);
    guest
        .send(&frames(|out| encode::hello(out, &evil).unwrap()))
        .await;
    let session = Session::connect(Link::socket(host), Some(BOOT_ID)).await;
    let session = Arc::new(session.unwrap());
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    let visitor = visit(&session).await;
    settle_visit(&visitor, &mut guest).await;
}

#[tokio::test]
async fn the_visit_ends_with_the_owners_session() {
    // The owner may be gone already, and the visit the last that needs it.
    for owner_first in [false, true] {
        let (session, mut guest) = owner().await;
        let visitor = visit(&session).await;
        let (mut stream, _) = open_for(&visitor, &mut guest, 1).await;
        let session = (!owner_first).then_some(session);
        drop(guest);
        let lost = stream.next().await.unwrap_err();
        assert_eq!(lost, Lost::Closed);
        let mut lost = visitor.lost();
        let lost = *lost.wait_for(Option::is_some).await.unwrap();
        assert_eq!(lost, Some(Lost::Closed));
        drop(session);
    }
}

#[tokio::test]
async fn a_visitor_that_never_pauses_does_not_stop_a_runtime_of_one_thread() {
    use std::io::Write;
    const MOST: usize = 128 * 1024 * 1024;
    let (session, mut guest) = owner().await;
    let caller = Caller::greeted(&session, WINDOW).await;
    let nonsense = frames(|out| encode::ack(out, StreamId::new(1).unwrap())).repeat(8192);
    let enough = Arc::new(AtomicBool::new(false));
    let (under_way, is_under_way) = tokio::sync::oneshot::channel();
    let flood = tokio::task::spawn_blocking({
        let mut link = caller.link.into_std().unwrap();
        link.set_nonblocking(false).unwrap();
        let enough = enough.clone();
        move || {
            let (mut sent, mut under_way) = (0, Some(under_way));
            while sent < MOST && !enough.load(Ordering::Relaxed) {
                match link.write(&nonsense) {
                    Ok(count) => sent += count,
                    Err(_) => break,
                }
                if sent > 1024 * 1024 {
                    under_way.take().map(|under_way| under_way.send(()));
                }
            }
            sent
        }
    });
    let _ = is_under_way.await;
    settle(&session, &mut guest).await;
    enough.store(true, Ordering::Relaxed);
    let sent = flood.await.unwrap();
    assert!(
        sent < MOST,
        "nothing else ran before the visitor was finished"
    );
}
