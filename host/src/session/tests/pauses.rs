//! A guest that is paused.

use super::*;

/// How long a pause takes, which is longer than any timeout.
const PAUSE: Duration = Duration::from_secs(3600);

/// Opens a request of another kind than those that the tests send first.
fn open(session: &Session) -> Stream {
    session.open(&Request::List { after: 0 }).unwrap()
}

#[tokio::test]
async fn what_is_sent_in_a_pause_arrives_after_it_and_only_one_request_overtakes_it() {
    let (session, mut guest) = connect().await;
    let before = open(&session);
    session.pause(false);
    let (one, other) = (open(&session), open(&session));
    one.cancel();
    assert_eq!(guest.recv().await, Some(FromHost::Open(before.id)));
    let first = session.open_first(&Request::Ping).unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Open(first.id)));
    session.resume();
    let after = open(&session);
    for expected in [
        FromHost::Open(one.id),
        FromHost::Open(other.id),
        FromHost::Cancel(one.id),
        FromHost::Open(after.id),
    ] {
        assert_eq!(guest.recv().await, Some(expected));
    }
}

#[tokio::test]
async fn requests_are_refused_in_a_pause_that_refuses_them() {
    let (session, mut guest) = connect().await;
    session.pause(true);
    let refused = session.open(&Request::Ping);
    assert_eq!(refused.map(drop), Err(OpenError::Paused));
    let first = session.open_first(&Request::Ping).unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Open(first.id)));
    session.resume();
    let next = open(&session);
    assert_eq!(guest.recv().await, Some(FromHost::Open(next.id)));
}

#[tokio::test(start_paused = true)]
async fn a_link_is_made_again_only_when_the_guest_can_answer() {
    let (session, mut guest) = connect_serial_with_window(100).await;
    // The link is dropped before the pause, and the guest is paused before it answers.
    session.drop_link();
    guest.recv_reset().await;
    session.pause(false);
    let held = open(&session);
    tokio::time::sleep(PAUSE).await;
    assert_eq!(*session.link_error().borrow(), None);
    session.resume();
    // The guest answers the reset that it has received last.
    guest.answer_reset(100).await;
    assert_eq!(guest.recv().await, Some(FromHost::Open(held.id)));

    // The link is dropped in a pause.
    session.pause(false);
    session.drop_link();
    tokio::time::sleep(PAUSE).await;
    session.resume();
    guest.answer_reset(100).await;
    assert_eq!(guest.recv().await, Some(FromHost::Open(held.id)));
}
