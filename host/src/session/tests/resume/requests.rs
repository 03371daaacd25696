//! Requests that are under way when the link breaks.

use super::*;

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_made_up_for() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    for _ in 0..2 {
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        assert_eq!(guest.recv_resume(id).await.ticket, TICKET);
        // The answer is lost again.
    }
    guest
        .send(&attached(id, 0, 0, Some(at(0, GUEST_WINDOW))))
        .await;
    expect_started(&mut stream).await;
    guest.send(&data(id, Channel::Stdout, b"hello")).await;
    assert_eq!(finish(&mut stream, &mut guest, 5).await, b"hello");
}

#[tokio::test]
async fn a_start_is_told_once_however_often_it_is_taken_up() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    for _ in 0..3 {
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        guest.recv_resume(id).await;
        guest.send(&attached(id, 0, 0, None)).await;
        settle(&session, &mut guest).await;
    }
    guest.send(&data(id, Channel::Stdout, b"x")).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Data(..))), "{event:?}");
    guest.send(&started(id)).await;
    assert_eq!(
        link_error(&session).await,
        LinkError::Violation(WireError::Malformed)
    );
}

#[tokio::test]
async fn a_process_that_the_agent_never_heard_of_is_started_with_its_input() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from(pattern(10_000))).await);
    assert!(input.write(Bytes::from_static(b"the end")).await);
    // The guest reads none of this.
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv_resume(id).await.stdout, at(0, WINDOW));
    input.end();
    guest.send(&not_found(id)).await;
    assert_eq!(guest.recv_any().await, Some(FromHost::Ack(id)));
    assert_eq!(guest.recv_any().await, Some(FromHost::Start(id, TICKET)));
    let received = guest.recv_data(id, 10_007).await;
    assert_eq!(received, [&pattern(10_000)[..], b"the end"].concat());
    assert_eq!(guest.recv_any().await, Some(FromHost::End(id)));
    guest.send(&started(id)).await;
    expect_started(&mut stream).await;
    guest.send(&data(id, Channel::Stdout, b"hello")).await;
    assert_eq!(finish(&mut stream, &mut guest, 5).await, b"hello");
    settle(&session, &mut guest).await;
    assert_eq!(guest.acks, [id]);
}

#[tokio::test]
async fn a_start_that_is_lost_again_and_again_is_sent_again_and_again() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from_static(b"input")).await);
    guest.recv_data(id, 5).await;
    for _ in 0..3 {
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        guest.recv_resume(id).await;
        guest.send(&not_found(id)).await;
        assert_eq!(guest.recv().await, Some(FromHost::Start(id, TICKET)));
        assert_eq!(guest.recv_data(id, 5).await, b"input");
    }
    // The window is as for any start.
    let more = pattern(GUEST_WINDOW as usize);
    let write = tokio::spawn(async move { input.write(more.into()).await });
    let expected = &pattern(GUEST_WINDOW as usize)[..GUEST_WINDOW as usize - 5];
    assert!(guest.recv_data(id, expected.len()).await == expected);
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    guest.send(&started(id)).await;
    finish(&mut stream, &mut guest, 0).await;
    assert!(!write.await.unwrap());
}

#[tokio::test]
async fn a_process_that_ran_and_is_unknown_now_is_an_error() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"begun")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    guest.recv_resume(id).await;
    guest.send(&not_found(id)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"begun");
    let Ok(Outcome::Failed(failed)) = end.as_ref().map(Closing::outcome) else {
        panic!("{end:?}");
    };
    assert_eq!(failed.kind, FailureKind::NotFound);
    settle(&session, &mut guest).await;
    assert!(guest.acks.contains(&id));
}

#[tokio::test]
async fn another_refusal_than_not_found_does_not_start_it_twice() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    guest.recv_resume(stream.id).await;
    let failure = Failure::new(FailureKind::Limit, Stage::Clone, "too many");
    guest
        .send(&close(stream.id, &Outcome::Failed(failure)))
        .await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Failed(_))),
        "{end:?}"
    );
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_program_that_was_not_found_is_not_looked_for_again() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    guest.recv_resume(stream.id).await;
    guest.send(&not_found(stream.id)).await;
    assert_eq!(guest.recv().await, Some(FromHost::Start(stream.id, TICKET)));
    // This is the answer to the start.
    guest.send(&not_found(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Failed(_))),
        "{end:?}"
    );
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_cancelled_start_that_never_arrived_is_not_sent_again() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open(&session, &mut guest).await;
    stream.cancel();
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    guest.recv_resume(stream.id).await;
    assert_eq!(guest.recv().await, Some(FromHost::Cancel(stream.id)));
    guest.send(&not_found(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Failed(_))),
        "{end:?}"
    );
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_signal_may_have_been_sent_or_not_and_that_is_said() {
    let (session, mut guest) = connect_serial().await;
    let signal = Request::Signal {
        process: Selector::Id(ID),
        signal: 15,
    };
    let mut stream = session.open(&signal).unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
    session.drop_link();
    let error = stream.next().await.unwrap_err();
    assert_eq!(error, LinkError::Dropped);
    assert!(error.to_string().contains("under way"), "{error}");
    // Other streams are not affected, and the signal is not sent again.
    guest.answer_reset(GUEST_WINDOW).await;
    settle(&session, &mut guest).await;
    let mut again = session.open(&signal).unwrap();
    assert_ne!(again.id, stream.id);
    assert_eq!(guest.recv().await, Some(FromHost::Open(again.id)));
    guest.send(&close(again.id, &Outcome::Done)).await;
    let event = again.next().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::Done)),
        "{event:?}"
    );
}

#[tokio::test]
async fn what_can_be_asked_twice_is_asked_again() {
    let process = Selector::Tag("a tag");
    for (request, outcome) in [
        (Request::Ping, Outcome::Pong),
        (Request::Kill { process }, Outcome::Exited(exit(1000))),
        (Request::Detach { process }, Outcome::Done),
        (Request::Forget { process }, Outcome::Done),
        (
            Request::List { after: 0 },
            Outcome::EndOfList { more: false },
        ),
        (Request::PowerOff { grace_ms: 1 }, Outcome::PoweringOff),
    ] {
        let (session, mut guest) = connect_serial().await;
        let mut stream = session.open(&request).unwrap();
        assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        for _ in 0..2 {
            session.drop_link();
            guest.answer_reset(GUEST_WINDOW).await;
            assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        }
        guest.send(&close(stream.id, &outcome)).await;
        let event = stream.next().await;
        assert!(
            matches!(event, Ok(StreamEvent::Closed(_))),
            "{request:?}: {event:?}"
        );
        settle(&session, &mut guest).await;
        assert_eq!(guest.acks, [stream.id]);
    }
}

#[tokio::test]
async fn what_is_gone_when_it_is_to_be_removed_again_was_removed() {
    for request in [
        Request::Forget {
            process: Selector::Id(ID),
        },
        Request::Service(ServiceRequest::Remove { name: "web" }),
    ] {
        let (session, mut guest) = connect_serial().await;
        // A first request fails with the agent's answer.
        let mut stream = session.open(&request).unwrap();
        assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        guest.send(&not_found(stream.id)).await;
        let event = stream.next().await;
        let failed = matches!(outcome_of(&event), Some(Outcome::Failed(_)));
        assert!(failed, "{request:?}: {event:?}");
        let mut stream = session.open(&request).unwrap();
        assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        guest.send(&not_found(stream.id)).await;
        let event = stream.next().await;
        let done = matches!(outcome_of(&event), Some(Outcome::Done));
        assert!(done, "{request:?}: {event:?}");
    }
}

#[tokio::test]
async fn a_start_in_the_background_is_asked_again_with_its_ticket() {
    let (session, mut guest) = connect_serial().await;
    let background = Start {
        mode: ProcessMode::Background,
        ..start(99)
    };
    let mut stream = session.open(&Request::Start(background)).unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Start(stream.id, 99)));
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv().await, Some(FromHost::Start(stream.id, 99)));
    let spawned = Outcome::Spawned { id: ID, pid: PID };
    guest.send(&close(stream.id, &spawned)).await;
    let event = stream.next().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::Spawned { .. })),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_list_shows_no_process_twice() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = session.open(&Request::List { after: 0 }).unwrap();
    let id = stream.id;
    assert_eq!(guest.recv().await, Some(FromHost::Open(id)));
    for process in [1, 2, 4] {
        guest.send(&listed(id, process)).await;
    }
    settle(&session, &mut guest).await;
    let mut shown = vec![next_listed(&mut stream).await];
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv().await, Some(FromHost::Open(id)));
    for process in [1, 2, 4, 7] {
        guest.send(&listed(id, process)).await;
    }
    let end = Outcome::EndOfList { more: false };
    guest.send(&close(id, &end)).await;
    for _ in 0..3 {
        shown.push(next_listed(&mut stream).await);
    }
    assert_eq!(shown, [1, 2, 4, 7]);
    let event = stream.next().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::EndOfList { more: false })),
        "{event:?}"
    );
}

async fn next_listed(stream: &mut Stream) -> u32 {
    match stream.next().await {
        Ok(StreamEvent::Listed(entry)) => match entry.event() {
            Event::Listed(entry) => entry.id,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn streams_can_be_opened_and_fed_while_there_is_no_link() {
    let (session, mut guest) = connect_serial().await;
    let mut before = open_started(&session, &mut guest).await;
    session.drop_link();
    let (nonce, _) = guest.recv_reset().await;
    let mut stream = session.open(&Request::Start(start(12))).unwrap();
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from_static(b"input")).await);
    input.end();
    // A stream that is dropped before there is a link.
    let unwanted = session.open(&Request::Start(start(13))).unwrap();
    let unwanted = {
        let id = unwanted.id;
        drop(unwanted);
        id
    };
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    guest.recv_resume(before.id).await;
    guest.send(&attached(before.id, 0, 0, None)).await;
    assert_eq!(guest.recv().await, Some(FromHost::Start(id, 12)));
    assert_eq!(guest.recv_data(id, 5).await, b"input");
    assert_eq!(guest.recv().await, Some(FromHost::End(id)));
    assert_eq!(guest.recv().await, Some(FromHost::Start(unwanted, 13)));
    assert_eq!(guest.recv().await, Some(FromHost::Cancel(unwanted)));
    guest.send(&exited(unwanted, 0)).await;
    guest.send(&started(id)).await;
    expect_started(&mut stream).await;
    finish(&mut stream, &mut guest, 0).await;
    finish(&mut before, &mut guest, 0).await;
}

#[tokio::test]
async fn a_stream_that_is_opened_as_the_link_breaks_runs_once() {
    let (session, mut guest) = connect_serial().await;
    session.drop_link();
    // The session has not noticed the break yet.
    let mut stream = session.open(&exec()).unwrap();
    assert!(stream.input().write(Bytes::from_static(b"input")).await);
    guest.answer_reset(GUEST_WINDOW).await;
    let received = guest.recv().await;
    if let Some(FromHost::Resume(..)) = received {
        guest.send(&not_found(stream.id)).await;
        assert_eq!(guest.recv().await, Some(FromHost::Start(stream.id, TICKET)));
    } else {
        assert_eq!(received, Some(FromHost::Start(stream.id, TICKET)));
    }
    assert_eq!(guest.recv_data(stream.id, 5).await, b"input");
    guest.send(&started(stream.id)).await;
    expect_started(&mut stream).await;
    finish(&mut stream, &mut guest, 0).await;
}

/// Requests of the host do not count as unsent control bytes.
#[tokio::test]
async fn a_guest_is_not_deaf_because_the_host_asks_much_at_once() {
    let (session, mut guest) = connect_serial().await;
    let cwd = vec![b'x'; 200_000];
    let mut streams = Vec::new();
    for ticket in 0..10 {
        let start = Start {
            cwd: &cwd,
            ..start(ticket)
        };
        let stream = session.open(&Request::Start(start)).unwrap();
        stream.input().end();
        streams.push(stream);
    }
    for (stream, ticket) in streams.iter().zip(0..) {
        assert_eq!(guest.recv().await, Some(FromHost::Start(stream.id, ticket)));
        assert_eq!(guest.recv().await, Some(FromHost::End(stream.id)));
    }
    settle(&session, &mut guest).await;
}
