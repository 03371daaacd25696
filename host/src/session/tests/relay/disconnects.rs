//! How clients and their streams end.

use super::*;

#[tokio::test]
async fn a_client_that_leaves_takes_its_streams_along() {
    for breach in [false, true] {
        let (session, mut guest) = owner().await;
        let mut kept = open(&session, &mut guest).await;
        let mut raw = RawClient::after_hello(&session, WINDOW).await;
        let mut ids = Vec::new();
        for number in 1..4 {
            raw.ask(number, &exec()).await;
            match guest.recv().await {
                Some(FromHost::Start(id, _)) => ids.push(id),
                other => panic!("{other:?}"),
            }
        }
        if breach {
            raw.send(&[0xff; 100]).await;
            while raw.recv().await.is_some() {}
        }
        drop(raw);
        for _ in 0..3 {
            match guest.recv().await {
                Some(FromHost::Cancel(id)) => ids.retain(|other| *other != id),
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
async fn a_stream_that_a_client_drops_is_cancelled_and_its_place_is_free() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    for _ in 0..3 {
        let (stream, id) = open_for(&client, &mut guest, 1).await;
        drop(stream);
        assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
        // Bytes in flight are ignored.
        guest.send(&data(id, Channel::Stdout, &[0; 1000])).await;
        guest.send(&exited(id, 2000)).await;
        settle_client(&client, &mut guest).await;
    }
}

/// It gets the close without reading the output before it.
#[tokio::test]
async fn a_client_that_cancels_hears_of_the_end_without_reading() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (mut stream, id) = start_for(&client, &mut guest, 1).await;
    let sent = fill(&session, &mut guest, id, WINDOW).await;
    stream.cancel();
    loop {
        match guest.recv().await {
            // The owner discards what it held for the client.
            Some(FromHost::Credit(..)) => {}
            received => {
                assert_eq!(received, Some(FromHost::Cancel(id)));
                break;
            }
        }
    }
    guest.send(&exited(id, sent as u64 + 1000)).await;
    let end = stream.next_except_output().await;
    assert!(
        matches!(outcome_of(&end), Some(Outcome::Exited(_))),
        "{end:?}"
    );
}

/// As above, when the process has ended and only its output is left.
#[tokio::test]
async fn a_client_that_cancels_late_hears_of_the_end_without_reading() {
    let (session, mut guest) = owner().await;
    let client = new_client(&session).await;
    let (mut stream, id) = start_for(&client, &mut guest, 1).await;
    let sent = fill(&session, &mut guest, id, WINDOW).await;
    guest.send(&ends(id)).await;
    guest.send(&exited(id, sent as u64)).await;
    settle_client(&client, &mut guest).await;
    stream.cancel();
    let end = stream.next_except_output().await;
    assert!(
        matches!(outcome_of(&end), Some(Outcome::Exited(_))),
        "{end:?}"
    );
    settle_client(&client, &mut guest).await;
}

#[tokio::test]
async fn the_connection_of_a_client_ends_with_the_owners_session() {
    // The owner may have dropped its session already, so that only the relay holds
    // it.
    for owner_first in [false, true] {
        let (session, mut guest) = owner().await;
        let client = new_client(&session).await;
        let (mut stream, _) = open_for(&client, &mut guest, 1).await;
        let session = (!owner_first).then_some(session);
        drop(guest);
        let error = stream.next().await.unwrap_err();
        assert_eq!(error, LinkError::Closed);
        let mut error = client.link_error();
        let error = *error.wait_for(Option::is_some).await.unwrap();
        assert_eq!(error, Some(LinkError::Closed));
        drop(session);
    }
}
