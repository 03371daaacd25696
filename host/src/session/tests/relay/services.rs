//! Services and connections of a client.

use super::*;

/// A failed service. The reason has the maximum length.
fn failed() -> ServiceState<'static> {
    ServiceState {
        name: "web",
        phase: Phase::Failed(FailureReason::NotReady(bells())),
        since_ms: 12,
        pid: None,
        restarts: 3,
        last_exit: Some(exit(7)),
        log: BufferedRange { start: 5, end: 9 },
    }
}

fn bells() -> &'static str {
    static BELLS: [u8; MAX_FAILURE_TEXT] = [7; MAX_FAILURE_TEXT];
    std::str::from_utf8(&BELLS).unwrap()
}

async fn opened(guest: &mut Guest) -> StreamId {
    match guest.recv().await {
        Some(FromHost::Open(id) | FromHost::ReadLog(id, ..)) => id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_state_of_a_service_reaches_a_client_as_it_is() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let look = Request::Service(ServiceRequest::GetState { name: "web" });
    let mut stream = client.open(&look).unwrap();
    let id = opened(&mut guest).await;
    guest.send(&close(id, &Outcome::Service(failed()))).await;
    let event = stream.next().await;
    assert_eq!(outcome_of(&event), Some(Outcome::Service(failed())));
}

#[tokio::test]
async fn a_client_lists_services() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let list = Request::Service(ServiceRequest::List { after: "" });
    let mut stream = client.open(&list).unwrap();
    let id = opened(&mut guest).await;
    for name in ["a", "b"] {
        let state = ServiceState { name, ..failed() };
        let frame = frames(|out| encode::event(out, id, &Event::Service(state)).unwrap());
        guest.send(&frame).await;
    }
    let end = Outcome::EndOfList { more: false };
    guest.send(&close(id, &end)).await;
    for name in ["a", "b"] {
        match stream.next().await {
            Ok(StreamEvent::Listed(entry)) => {
                let expected = ServiceState { name, ..failed() };
                assert_eq!(entry.event(), Event::Service(expected));
            }
            other => panic!("{other:?}"),
        }
    }
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Closed(_))), "{event:?}");
}

#[tokio::test]
async fn a_client_follows_a_log_over_a_link_that_breaks_behind_the_owner() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let logs = ReadLog {
        name: "web",
        from: LogStart::Offset(0),
        follow: true,
        window: WINDOW,
    };
    let request = Request::Service(ServiceRequest::ReadLog(logs));
    let mut stream = client.open(&request).unwrap();
    let id = opened(&mut guest).await;
    guest.send(&attached(id, 50, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b"one")).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Attached(_))), "{event:?}");
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let Some(FromHost::ReadLog(again, LogStart::Offset(offset), _)) = guest.recv().await else {
        panic!("the log was not asked for again");
    };
    // The bytes may have been on their way when the link broke.
    assert!(again == id && [50, 53].contains(&offset), "{offset}");
    guest.send(&attached(id, 60, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b"two")).await;
    let end = frames(|out| encode::end(out, id, Channel::Stdout));
    guest.send(&end).await;
    guest.send(&close(id, &Outcome::Service(failed()))).await;
    let (mut bytes, mut dropped) = (Vec::new(), 0);
    loop {
        match stream.next().await.unwrap() {
            StreamEvent::Data(_, more) => bytes.extend(more),
            StreamEvent::Gap(_, more) => dropped += more,
            StreamEvent::Closed(closing) => {
                assert!(matches!(closing.outcome(), Outcome::Service(_)));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let expected: (&[u8], _) = match offset {
        50 => (b"two", 10),
        _ => (b"onetwo", 7),
    };
    assert_eq!((&bytes[..], dropped), expected);
    assert_eq!(stream.offset(Channel::Stdout), 63);
}

#[tokio::test]
async fn a_client_has_a_connection_with_two_ways_and_two_ends() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let mut stream = client.open(&Request::Dial { port: 80 }).unwrap();
    let input = stream.input();
    let id = opened(&mut guest).await;
    let connected = frames(|out| encode::event(out, id, &Event::Connected).unwrap());
    guest.send(&connected).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Connected)), "{event:?}");
    assert!(input.write(Bytes::from_static(b"ping")).await);
    assert_eq!(guest.recv_data(id, 4).await, b"ping");
    input.end();
    assert_eq!(guest.recv().await, Some(FromHost::End(id)));
    guest.send(&data(id, Channel::Stdout, b"pong")).await;
    let end = frames(|out| encode::end(out, id, Channel::Stdout));
    guest.send(&end).await;
    guest.send(&close(id, &Outcome::Done)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"pong");
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Done)),
        "{end:?}"
    );
}
