//! The answers that a client gets.

use vmcell_wire::terminal::{Size, TerminalState};

use super::*;

#[tokio::test]
async fn a_client_learns_what_the_agent_said_of_itself() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    assert_eq!(client.peer(), session.peer());
    settle_client(&client, &mut guest).await;
}

#[tokio::test]
async fn a_client_runs_a_process_with_input_and_output() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (mut stream, id) = open_for(&client, &mut guest, 77).await;
    let input = stream.input();
    // More than the window of either link.
    const COUNT: usize = 5 * GUEST_WINDOW as usize;
    let write = tokio::spawn(async move {
        let all = input.write(Bytes::from(pattern(COUNT))).await;
        input.end();
        all
    });
    let (mut stdin, mut granted) = (Vec::new(), 0);
    loop {
        match guest.recv().await {
            Some(FromHost::Data(_, bytes)) => stdin.extend(bytes),
            Some(FromHost::End(end)) => {
                assert_eq!(end, id);
                break;
            }
            other => panic!("{other:?}"),
        }
        if stdin.len() - granted > GUEST_WINDOW as usize / 2 {
            let grant = stdin.len() - granted;
            guest.send(&credit(id, grant as u32)).await;
            granted = stdin.len();
        }
    }
    assert!(write.await.unwrap());
    assert!(stdin == pattern(COUNT), "{} bytes arrived", stdin.len());

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
    let Ok(Outcome::Exited(received)) = end.as_ref().map(Closing::outcome) else {
        panic!("{end:?}");
    };
    assert_eq!(received, exit);
}

#[tokio::test]
async fn a_clients_input_waits_for_the_guest() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (stream, id) = open_for(&client, &mut guest, 1).await;
    let input = stream.input();
    let window = GUEST_WINDOW as usize;
    let write = tokio::spawn(async move { input.write(pattern(10 * window).into()).await });
    guest.recv_data(id, window).await;
    for _ in 0..5 {
        settle_client(&client, &mut guest).await;
        settle(&session, &mut guest).await;
    }
    assert!(!write.is_finished(), "somebody holds all that input");
    guest.send(&exited(id, 0)).await;
    assert!(!write.await.unwrap());
}

#[tokio::test]
async fn every_answer_reaches_the_client() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
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
        let mut stream = client.open(&request).unwrap();
        let Some(FromHost::Open(id)) = guest.recv().await else {
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
            let Event::Listed(entry) = entry.event() else {
                panic!("{entry:?}");
            };
            assert_eq!((entry.id, entry.pid, entry.tag), (4, 104, "tag"));
        }
        let (_, end) = read_to_end(&mut stream).await;
        assert_eq!(end.unwrap().outcome(), outcome, "{request:?}");
    }
    let background = Start {
        mode: ProcessMode::Background,
        ..start(5)
    };
    let mut stream = client.open(&Request::Start(background)).unwrap();
    let Some(FromHost::Start(id, 5)) = guest.recv().await else {
        panic!("it did not arrive");
    };
    let spawned = Outcome::Spawned { id: ID, pid: PID };
    guest.send(&close(id, &spawned)).await;
    let event = stream.next().await;
    assert!(
        matches!(
            outcome_of(&event),
            Some(Outcome::Spawned { id: ID, pid: PID })
        ),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_client_watches_a_process_with_gaps() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let requested = Attach {
        stdout: Some(Position {
            offset: 1000,
            window: WINDOW,
        }),
        stderr: None,
        ..attach(Selector::Tag("a tag"), true)
    };
    let mut stream = client.open(&Request::Attach(requested)).unwrap();
    let Some(FromHost::Attach(id, received)) = guest.recv().await else {
        panic!("it did not arrive");
    };
    assert_eq!(received, requested);
    let stdin = Position {
        offset: 50,
        window: 10,
    };
    guest.send(&attached(id, 900, 0, Some(stdin))).await;
    let event = stream.next().await;
    let Ok(StreamEvent::Attached(received)) = event else {
        panic!("{event:?}");
    };
    assert_eq!((received.stdout, received.stdin.unwrap().offset), (900, 50));
    let sent = [
        gap(id, Output::Stdout, 100),
        data(id, Channel::Stdout, b"here"),
        gap(id, Output::Stdout, 5),
        frames(|out| encode::end(out, id, Channel::Stdout)),
    ];
    guest.send(&sent.concat()).await;
    let mut received = Vec::new();
    for _ in 0..3 {
        received.push(match stream.next().await {
            Ok(StreamEvent::Gap(Channel::Stdout, bytes)) => (bytes, None),
            Ok(StreamEvent::Data(Channel::Stdout, bytes)) => (0, Some(bytes)),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(received, [(100, None), (0, Some("here".into())), (5, None)]);
    assert!(stream.input().write(Bytes::from_static(b"input")).await);
    assert_eq!(guest.recv_data(id, 5).await, b"input");
    guest.send(&exited(id, 1009)).await;
    assert_eq!(expect_exit(&mut stream).await, b"");
}

#[tokio::test]
async fn a_client_does_not_notice_that_the_owners_link_is_made_anew() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (mut stream, id) = open_for(&client, &mut guest, 31).await;
    let input = stream.input();
    assert!(input.write(Bytes::from_static(b"some input")).await);
    guest.recv_data(id, 10).await;
    let mut printed = 0;
    for round in 0..4 {
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        let resume = guest.recv_resume(id).await;
        assert_eq!(resume.ticket, 31);
        assert_eq!(resume.stdout.offset, printed);
        let stdin = Position {
            offset: 2 * round,
            window: GUEST_WINDOW,
        };
        guest.send(&attached(id, printed, 0, Some(stdin))).await;
        let rest = &b"some input"[2 * round as usize..];
        assert_eq!(guest.recv_data(id, rest.len()).await, rest);
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        printed += 5;
        settle(&session, &mut guest).await;
    }
    guest.send(&ends(id)).await;
    guest.send(&exited(id, printed)).await;
    // The `Started` event was lost, and is sent once.
    let event = stream.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
    assert_eq!(expect_exit(&mut stream).await, b"hello".repeat(4));
    settle_client(&client, &mut guest).await;
}

#[tokio::test]
async fn clients_do_not_see_each_others_streams() {
    let (session, mut guest) = owner().await;
    let (first, second) = (new_client(&session).await, new_client(&session).await);
    let (mut one, one_id) = start_for(&first, &mut guest, 1).await;
    let (mut two, two_id) = start_for(&second, &mut guest, 2).await;
    // For both it is the first stream, for the guest they are two.
    assert_eq!(one.id, two.id);
    assert_ne!(one_id, two_id);
    assert!(one.input().write(Bytes::from_static(b"for one")).await);
    assert_eq!(guest.recv_data(one_id, 7).await, b"for one");
    assert!(two.input().write(Bytes::from_static(b"for two")).await);
    assert_eq!(guest.recv_data(two_id, 7).await, b"for two");
    for (id, text) in [(two_id, b"two"), (one_id, b"one")] {
        guest.send(&data(id, Channel::Stdout, text)).await;
        guest.send(&ends(id)).await;
        guest.send(&exited(id, 3)).await;
    }
    assert_eq!(expect_exit(&mut one).await, b"one");
    assert_eq!(expect_exit(&mut two).await, b"two");
}

#[tokio::test]
async fn a_failure_in_words_that_are_not_safe_reaches_the_client() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (mut stream, id) = open_for(&client, &mut guest, 1).await;
    let text = "\x1b".repeat(vmcell_wire::limits::MAX_FAILURE_TEXT);
    let failure = Failure::new(FailureKind::NotFound, Stage::Exec, &text);
    guest.send(&close(id, &Outcome::Failed(failure))).await;
    let (_, end) = read_to_end(&mut stream).await;
    let Ok(Outcome::Failed(failed)) = end.as_ref().map(Closing::outcome) else {
        panic!("{end:?}");
    };
    assert_eq!(failed.kind, FailureKind::NotFound);
    settle_client(&client, &mut guest).await;
}

#[tokio::test]
async fn a_client_can_attach_to_an_agent_with_a_name_that_is_not_safe() {
    let (host, guest) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(guest);
    let name = "\x1b".repeat(vmcell_wire::limits::MAX_BUILD);
    let evil = Hello::new(&name, GUEST_WINDOW, BOOT_ID);
    guest
        .send(&frames(|out| encode::hello(out, &evil).unwrap()))
        .await;
    let session = Session::connect(Link::socket(host), Some(BOOT_ID)).await;
    let session = Arc::new(session.unwrap());
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let client = new_client(&session).await;
    settle_client(&client, &mut guest).await;
}

#[tokio::test]
async fn an_older_client_gets_only_outcomes_that_it_knows() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::new(&session);
    let older = Hello {
        capabilities: Capabilities::PROCESSES,
        ..Hello::new("vmcell 0.0.1", WINDOW, [0; 16])
    };
    raw.send(&frames(|out| encode::hello(out, &older).unwrap()))
        .await;
    assert_eq!(raw.recv().await, Some(FromRelay::Hello(BOOT_ID)));
    for (outcome, received) in [
        (Outcome::Done, Ok(())),
        (Outcome::DiskClean, Ok(())),
        (
            Outcome::Terminal(TERMINAL_STATE),
            Err(FailureKind::Unsupported),
        ),
    ] {
        raw.ask(1, &Request::Ping).await;
        let Some(FromHost::Open(id)) = guest.recv().await else {
            panic!("no ping came");
        };
        guest.send(&close(id, &outcome)).await;
        assert_eq!(raw.recv().await, Some(FromRelay::Closed(received)));
    }
}

const TERMINAL_STATE: TerminalState<'_> = TerminalState {
    size: Size {
        columns: 80,
        rows: 24,
    },
    echo: true,
    canonical: true,
    foreground: None,
};
