//! Clients that violate the protocol, and some that only seem to.

use super::*;

#[tokio::test]
async fn what_only_the_owner_may_do_is_refused() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
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
        let mut stream = client.open(&request).unwrap();
        let (_, end) = read_to_end(&mut stream).await;
        let Ok(Outcome::Failed(failed)) = end.as_ref().map(Closing::outcome) else {
            panic!("{end:?}");
        };
        assert_eq!(failed.kind, FailureKind::Denied);
    }
    // Nothing of this came to the guest.
    settle_client(&client, &mut guest).await;
}

#[tokio::test]
async fn a_request_that_the_owner_does_not_know_is_refused() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::after_hello(&session, WINDOW).await;
    let id = StreamId::new(1).unwrap();
    raw.send(&frame(Kind::Open, Some(id), &[0x7f, 1, 2, 3]))
        .await;
    let unsupported = FromRelay::Closed(Err(FailureKind::Unsupported));
    assert_eq!(raw.recv().await, Some(unsupported));
    raw.ask(1, &Request::Ping).await;
    assert!(matches!(guest.recv().await, Some(FromHost::Open(_))));
}

#[tokio::test]
async fn a_client_that_breaks_the_protocol_ends_its_own_connection_only() {
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
        let other = new_client(&session).await;
        let mut raw = RawClient::after_hello(&session, WINDOW).await;
        raw.send(&start).await;
        let Some(FromHost::Start(guest_stream, _)) = guest.recv().await else {
            panic!("it did not arrive");
        };
        // The owner may hang up before it is all sent.
        let _ = raw.link.write_all(&breach).await;
        while raw.recv().await.is_some() {}
        loop {
            match guest.recv().await {
                Some(FromHost::Data(..)) => {}
                received => {
                    assert_eq!(received, Some(FromHost::Cancel(guest_stream)));
                    break;
                }
            }
        }
        settle_client(&other, &mut guest).await;
        settle(&session, &mut guest).await;
    }
}

#[tokio::test]
async fn who_does_not_say_hello_first_is_disconnected() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::new(&session);
    raw.ask(1, &Request::Ping).await;
    assert_eq!(raw.recv().await, None);
    settle(&session, &mut guest).await;
}

/// A client may send on a stream whose close is still in flight.
#[tokio::test(flavor = "multi_thread")]
async fn words_that_cross_with_a_close_are_no_breach() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::after_hello(&session, WINDOW).await;
    let id = raw.ask(1, &exec()).await;
    let Some(FromHost::Start(guest_stream, _)) = guest.recv().await else {
        panic!("it did not arrive");
    };
    guest.send(&exited(guest_stream, 0)).await;
    assert_eq!(raw.recv().await, Some(FromRelay::Closed(Ok(()))));
    let late = frames(|out| {
        out.extend(data(id, Channel::Stdin, b"late"));
        encode::credit(out, id, Channel::Stdout, 1);
        encode::end(out, id, Channel::Stdin);
        encode::cancel(out, id);
        encode::ack(out, id);
    });
    raw.send(&late).await;
    // The number may be used again.
    for _ in 0..1000 {
        raw.ask(1, &Request::Ping).await;
        let Some(FromHost::Open(ping)) = guest.recv().await else {
            panic!("the ping did not arrive");
        };
        guest.send(&close(ping, &Outcome::Pong)).await;
        assert_eq!(raw.recv().await, Some(FromRelay::Closed(Ok(()))));
        let ack = frames(|out| encode::ack(out, id));
        raw.send(&ack).await;
    }
}
