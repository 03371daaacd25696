//! Services and connections, and guests that lie about them.

use super::*;
use crate::service::{ServicePhase, ServiceStatus};

const MALFORMED: LinkError = LinkError::Violation(WireError::Malformed);

fn state<'a>(name: &'a str, phase: Phase<'a>) -> ServiceState<'a> {
    ServiceState {
        name,
        phase,
        since_ms: 1,
        pid: Some(PID),
        restarts: 0,
        last_exit: None,
        log: BufferedRange { start: 0, end: 0 },
    }
}

fn running(name: &str) -> ServiceState<'_> {
    state(name, Phase::Running)
}

fn listed_service(stream: StreamId, name: &str) -> Vec<u8> {
    frames(|out| encode::event(out, stream, &Event::Service(running(name))).unwrap())
}

fn connected(stream: StreamId) -> Vec<u8> {
    frames(|out| encode::event(out, stream, &Event::Connected).unwrap())
}

fn closed(stream: StreamId, state: ServiceState<'_>) -> Vec<u8> {
    close(stream, &Outcome::Service(state))
}

const LIST: Request<'_> = Request::Service(ServiceRequest::List { after: "" });

fn logs(from: LogStart) -> Request<'static> {
    Request::Service(ServiceRequest::ReadLog(ReadLog {
        name: "web",
        from,
        follow: true,
        window: WINDOW,
    }))
}

async fn next_name(stream: &mut Stream) -> String {
    match stream.next().await {
        Ok(StreamEvent::Listed(entry)) => match entry.event() {
            Event::Service(state) => state.name.to_owned(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Opens the log of a service; the guest reports that it begins at `begins_at`.
async fn read_log(session: &Session, guest: &mut Guest, begins_at: u64) -> Stream {
    let from = LogStart::Lines(10);
    let mut stream = session.open(&logs(from)).unwrap();
    let received = guest.recv().await;
    assert_eq!(received, Some(FromHost::ReadLog(stream.id, from, WINDOW)));
    guest.send(&attached(stream.id, begins_at, 0, None)).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Attached(_))), "{event:?}");
    stream
}

/// Lets a guest answer a request with bytes that break the protocol.
async fn error_for(request: &Request<'_>, bytes: impl FnOnce(StreamId) -> Vec<u8>) -> LinkError {
    let (session, mut guest) = connect().await;
    let mut stream = session.open(request).unwrap();
    guest.recv().await;
    guest.send(&bytes(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    end.expect_err("the guest broke the protocol")
}

#[tokio::test]
async fn a_list_shows_no_service_twice_over_a_broken_link() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = session.open(&LIST).unwrap();
    let id = stream.id;
    assert_eq!(guest.recv().await, Some(FromHost::Open(id)));
    for name in ["a", "b"] {
        guest.send(&listed_service(id, name)).await;
    }
    let mut shown = vec![next_name(&mut stream).await];
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv().await, Some(FromHost::Open(id)));
    // One has gone meanwhile, and one has come.
    for name in ["a", "aa", "c"] {
        guest.send(&listed_service(id, name)).await;
    }
    let end = Outcome::EndOfList { more: false };
    guest.send(&close(id, &end)).await;
    for _ in 0..2 {
        shown.push(next_name(&mut stream).await);
    }
    assert_eq!(shown, ["a", "b", "c"]);
    let event = stream.next().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::EndOfList { .. })),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_list_of_services_without_an_end_is_refused() {
    let error = error_for(&LIST, |id| {
        let names = (0..=MAX_LISTED).map(|number| format!("s{number:04}"));
        names.flat_map(|name| listed_service(id, &name)).collect()
    });
    assert_eq!(error.await, MALFORMED);
}

#[tokio::test]
async fn a_service_that_nobody_asked_for_is_refused() {
    let look = Request::Service(ServiceRequest::GetState { name: "web" });
    for request in [look, Request::List { after: 0 }, exec()] {
        let error = error_for(&request, |id| listed_service(id, "web")).await;
        assert_eq!(error, MALFORMED, "{request:?}");
    }
    let error = error_for(&LIST, |id| listed(id, 1)).await;
    assert_eq!(error, MALFORMED);
}

#[tokio::test]
async fn names_that_are_none_are_refused() {
    for name in ["../etc", "a b", "\x1b[2J", "-x"] {
        let error = error_for(&LIST, |id| listed_service(id, name)).await;
        assert_eq!(error, MALFORMED, "{name:?}");
    }
}

#[tokio::test]
async fn an_answer_with_a_name_that_is_none_is_no_answer() {
    let (session, mut guest) = connect().await;
    for answer in [
        running("a b"),
        state("web", Phase::Waiting("../x")),
        state(
            "web",
            Phase::Failed(FailureReason::DependencyFailed("\x07")),
        ),
    ] {
        let look = Request::Service(ServiceRequest::GetState { name: "web" });
        let mut stream = session.open(&look).unwrap();
        assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        guest.send(&closed(stream.id, answer)).await;
        let event = stream.next().await;
        let Some(Outcome::Service(state)) = outcome_of(&event) else {
            panic!("{event:?}");
        };
        assert_eq!(ServiceStatus::from_wire(&state), None);
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn texts_about_services_are_safe_to_print() {
    let (session, mut guest) = connect().await;
    let wait = Request::Service(ServiceRequest::Wait {
        name: "web",
        until: WaitFor::Ready,
    });
    let mut stream = session.open(&wait).unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
    let reason = FailureReason::NotReady("\x1b[31mred");
    let answer = state("web", Phase::Failed(reason));
    guest.send(&closed(stream.id, answer)).await;
    let event = stream.next().await;
    let Some(Outcome::Service(answer)) = outcome_of(&event) else {
        panic!("{event:?}");
    };
    let phase = ServiceStatus::from_wire(&answer).unwrap().phase;
    let expected = crate::service::FailureReason::NotReady("\u{fffd}[31mred".to_owned());
    assert_eq!(phase, ServicePhase::Failed(expected));
}

#[tokio::test]
async fn what_is_asked_of_a_service_is_asked_again_over_a_new_link() {
    let name = "web";
    let start = StartService {
        name,
        ticket: TICKET,
        if_same: false,
        spec: b"",
    };
    let until = WaitFor::Ended;
    for request in [
        ServiceRequest::Start(start),
        ServiceRequest::Wait { name, until },
        ServiceRequest::GetState { name },
        ServiceRequest::Stop { name },
        ServiceRequest::Restart { name },
    ] {
        let (session, mut guest) = connect_serial().await;
        let mut stream = session.open(&Request::Service(request)).unwrap();
        assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        for _ in 0..2 {
            session.drop_link();
            guest.answer_reset(GUEST_WINDOW).await;
            assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
        }
        guest.send(&closed(stream.id, running(name))).await;
        let event = stream.next().await;
        assert!(
            matches!(outcome_of(&event), Some(Outcome::Service(_))),
            "{request:?}: {event:?}"
        );
        settle(&session, &mut guest).await;
        assert_eq!(guest.acks, [stream.id]);
    }
}

#[tokio::test]
async fn a_log_goes_on_at_its_byte_and_says_what_was_dropped_meanwhile() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = read_log(&session, &mut guest, 1000).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"one")).await;
    guest.send(&gap(id, Output::Stdout, 7)).await;
    guest.send(&data(id, Channel::Stdout, b"two")).await;
    settle(&session, &mut guest).await;
    // Nothing was read yet, so there is less room by what is here.
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let received = guest.recv().await;
    let again = LogStart::Offset(1013);
    assert_eq!(received, Some(FromHost::ReadLog(id, again, WINDOW - 6)));
    guest.send(&attached(id, 1020, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b"three")).await;
    guest
        .send(&frames(|out| encode::end(out, id, Channel::Stdout)))
        .await;
    guest.send(&closed(id, state("web", Phase::Stopped))).await;
    let mut parts = Vec::new();
    loop {
        match stream.next().await.unwrap() {
            StreamEvent::Data(_, bytes) => parts.push(String::from_utf8(bytes.to_vec()).unwrap()),
            StreamEvent::Gap(_, bytes) => parts.push(bytes.to_string()),
            StreamEvent::Closed(closing) => {
                assert!(matches!(closing.outcome(), Outcome::Service(_)));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(parts, ["one", "7", "two", "7", "three"]);
    assert_eq!(stream.offset(Channel::Stdout), 1025);
}

#[tokio::test]
async fn a_log_that_has_not_begun_is_asked_for_as_before() {
    let (session, mut guest) = connect_serial().await;
    let from = LogStart::Lines(10);
    let mut stream = session.open(&logs(from)).unwrap();
    for _ in 0..3 {
        let received = guest.recv().await;
        assert_eq!(received, Some(FromHost::ReadLog(stream.id, from, WINDOW)));
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
    }
    guest.recv().await;
    guest.send(&attached(stream.id, 5, 0, None)).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Attached(_))), "{event:?}");
    assert_eq!(stream.offset(Channel::Stdout), 5);
}

#[tokio::test]
async fn a_log_begins_once_and_before_its_bytes() {
    let request = logs(LogStart::Lines(10));
    let twice = |id| [attached(id, 5, 0, None), attached(id, 5, 0, None)].concat();
    assert_eq!(error_for(&request, twice).await, MALFORMED);
    let late = |id| [gap(id, Output::Stdout, 5), attached(id, 100, 0, None)].concat();
    assert_eq!(error_for(&request, late).await, MALFORMED);
    let late = |id| {
        let bytes = data(id, Channel::Stdout, b"x");
        [bytes, attached(id, 100, 0, None)].concat()
    };
    assert_eq!(error_for(&request, late).await, MALFORMED);
    let other = |id| data(id, Channel::Stderr, b"x");
    assert_eq!(error_for(&request, other).await, MALFORMED);
}

#[tokio::test]
async fn a_log_never_goes_back() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = read_log(&session, &mut guest, 1000).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    guest.recv().await;
    guest.send(&attached(stream.id, 999, 0, None)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert_eq!(end.unwrap_err(), MALFORMED);
}

#[tokio::test]
async fn a_connection_is_told_once_and_where_it_was_asked_for() {
    let dial = Request::Dial { port: 80 };
    let twice = |id| [connected(id), connected(id)].concat();
    assert_eq!(error_for(&dial, twice).await, MALFORMED);
    let look = Request::Service(ServiceRequest::GetState { name: "web" });
    for request in [exec(), LIST, look, logs(LogStart::Lines(1)), Request::Ping] {
        let error = error_for(&request, connected).await;
        assert_eq!(error, MALFORMED, "{request:?}");
    }
}

#[tokio::test]
async fn a_connection_breaks_with_its_link_and_nobody_else_suffers() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = session.open(&Request::Dial { port: 80 }).unwrap();
    let input = stream.input();
    assert_eq!(guest.recv().await, Some(FromHost::Open(stream.id)));
    guest.send(&connected(stream.id)).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Connected)), "{event:?}");
    assert!(input.write(Bytes::from_static(b"ping")).await);
    assert_eq!(guest.recv_data(stream.id, 4).await, b"ping");
    guest.send(&data(stream.id, Channel::Stdout, b"pong")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    let (bytes, end) = read_to_end(&mut stream).await;
    // What had come is not taken away.
    assert_eq!(bytes, b"pong");
    assert_eq!(end.unwrap_err(), LinkError::Dropped);
    assert!(!input.write(Bytes::from_static(b"ping")).await);
    guest.answer_reset(GUEST_WINDOW).await;
    settle(&session, &mut guest).await;
}
