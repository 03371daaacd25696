//! A client that does not read, or never pauses.

use super::*;

/// The client's window applies to the relay; the guest does not see it.
#[tokio::test]
async fn a_client_with_a_small_window_gets_everything_in_pieces_that_fit() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::after_hello(&session, 100).await;
    let id = raw.ask(9, &exec()).await;
    let Some(FromHost::Start(guest_stream, _)) = guest.recv().await else {
        panic!("it did not arrive");
    };
    guest.send(&started(guest_stream)).await;
    assert_eq!(raw.recv().await, Some(FromRelay::Started));
    guest
        .send(&data(guest_stream, Channel::Stdout, &[1; 1000]))
        .await;
    guest.send(&ends(guest_stream)).await;
    guest.send(&exited(guest_stream, 1000)).await;
    let mut received = 0;
    while received < 1000 {
        match raw.recv().await {
            Some(FromRelay::Data(count)) => {
                received += count;
                assert!(count <= 100, "{count} bytes at once");
                let grant = frames(|out| encode::credit(out, id, Channel::Stdout, count as u32));
                raw.send(&grant).await;
            }
            Some(FromRelay::Other) => {}
            other => panic!("{other:?} after {received} bytes"),
        }
    }
    while let Some(received) = raw.recv().await {
        if received == FromRelay::Closed(Ok(())) {
            break;
        }
        assert_eq!(received, FromRelay::Other);
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_only_its_own_stream() {
    let (session, mut guest) = owner().await;
    let lazy = new_client(&session).await;
    let (mut stalled, stalled_id) = start_for(&lazy, &mut guest, 1).await;
    // The client's window and the owner's, or nearly: credit
    // comes for half a window at once.
    let sent = fill(&session, &mut guest, stalled_id, WINDOW).await;
    assert!(sent <= 2 * WINDOW as usize, "{sent} bytes were taken");
    assert!(
        sent >= 3 * WINDOW as usize / 2,
        "only {sent} bytes were taken"
    );

    // The same client, another one, and the owner.
    let other = new_client(&session).await;
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
async fn one_output_that_a_client_does_not_read_does_not_stop_the_other() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (stream, id) = start_for(&client, &mut guest, 1).await;
    let mut stderr = stream.output(Channel::Stderr);
    fill(&session, &mut guest, id, WINDOW).await;
    guest.send(&data(id, Channel::Stderr, b"problem")).await;
    let read = outputs::read(&mut stderr).await;
    assert_eq!(read, outputs::Read::Data("problem".into()));
}

/// A client may grant credit and then not read.
#[tokio::test]
async fn a_client_that_grants_credit_and_does_not_read_is_not_hoarded_for() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::after_hello(&session, WINDOW).await;
    let id = raw.ask(1, &exec()).await;
    let Some(FromHost::Start(guest_stream, _)) = guest.recv().await else {
        panic!("it did not arrive");
    };
    guest.send(&started(guest_stream)).await;
    assert_eq!(raw.recv().await, Some(FromRelay::Started));
    let mut sent = fill(&session, &mut guest, guest_stream, WINDOW).await;
    for _ in 0..16 {
        let grant = frames(|out| encode::credit(out, id, Channel::Stdout, 512 * 1024));
        raw.send(&grant).await;
        sent += fill(&session, &mut guest, guest_stream, 0).await;
    }
    assert!(
        sent <= 6 * 1024 * 1024,
        "{sent} bytes wait for a client that does not read"
    );
}

#[tokio::test]
async fn a_client_that_asks_and_asks_and_does_not_read_is_disconnected() {
    let (session, mut guest) = owner().await;
    let mut raw = RawClient::after_hello(&session, WINDOW).await;
    // Each one is refused with a short message.
    let id = StreamId::new(1).unwrap();
    let refused = Request::PowerOff { grace_ms: 0 };
    let frame = frames(|out| encode::open(out, id, &refused).unwrap());
    let many = frame.repeat(1000);
    let mut sent = 0;
    while sent < 64 * 1024 * 1024 && raw.link.write_all(&many).await.is_ok() {
        sent += many.len();
    }
    assert!(sent < 16 * 1024 * 1024, "{sent} bytes were taken");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_client_that_never_pauses_does_not_stop_a_runtime_of_one_thread() {
    let (session, mut guest) = owner().await;
    let raw = RawClient::after_hello(&session, WINDOW).await;
    let garbage = frames(|out| encode::ack(out, StreamId::new(1).unwrap())).repeat(8192);
    let flood = Flood::start(raw.link, garbage).await;
    settle(&session, &mut guest).await;
    flood.stop();
    assert!(
        flood.was_interrupted().await,
        "nothing else ran before the client was finished"
    );
}
