//! A guest that is asked for the number of its processes every second.

use super::*;
use crate::metrics::ProcessCounter;

/// Receives the question, and nothing before it.
async fn recv_question(guest: &mut Guest) -> StreamId {
    match guest.recv().await {
        Some(FromHost::Open(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn processes(stream: StreamId, count: u32) -> Vec<u8> {
    close(stream, &Outcome::Processes { count })
}

#[tokio::test]
async fn the_answer_is_the_number_and_not_a_use_of_the_vm() {
    let (session, mut guest) = connect().await;
    let before = session.noticed_traffic().unwrap();
    let mut counter = ProcessCounter::default();
    for number in [0, 5, u32::MAX] {
        let answering = async {
            let question = recv_question(&mut guest).await;
            assert_eq!(session.noticed_traffic(), None);
            guest.send(&processes(question, number)).await;
        };
        let (count, ()) = tokio::join!(counter.count(&session), answering);
        assert_eq!(count, Some(number));
        assert_eq!(session.noticed_traffic(), Some(before));
    }
    // The last acknowledgement is sent with the next request.
    let ack = LinkTraffic {
        received: 0,
        sent: Header::SIZE as u64,
    };
    let mut expected = before;
    expected += counter.traffic() - ack;
    assert_eq!(session.traffic(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_does_not_answer_gets_no_second_question_and_delays_nothing() {
    let (session, mut guest) = connect().await;
    let before = session.noticed_traffic().unwrap();
    let mut counter = ProcessCounter::default();
    let began = tokio::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(counter.count(&session).await, None);
    }
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(session.noticed_traffic(), Some(before));
    let late = recv_question(&mut guest).await;
    // An answer that is late is not the number of now.
    guest.send(&processes(late, 7)).await;
    let answering = async {
        let question = recv_question(&mut guest).await;
        guest.send(&processes(question, 8)).await;
    };
    let (count, ()) = tokio::join!(counter.count(&session), answering);
    assert_eq!(count, Some(8));
    settle(&session, &mut guest).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_else_looks_at_the_vm_delays_nothing() {
    let (session, mut guest) = connect().await;
    let mut counter = ProcessCounter::default();
    let looking = session.unnoticed(std::future::pending::<()>());
    tokio::select! {
        biased;
        () = looking => {}
        count = counter.count(&session) => assert_eq!(count, None),
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn any_other_answer_is_no_number() {
    let (session, mut guest) = connect().await;
    let mut counter = ProcessCounter::default();
    let failure = Failure::new(FailureKind::NotFound, Stage::Cgroup, "no controller");
    for outcome in [Outcome::Failed(failure), Outcome::Pong, Outcome::Done] {
        let answering = async {
            let question = recv_question(&mut guest).await;
            guest.send(&close(question, &outcome)).await;
        };
        let (count, ()) = tokio::join!(counter.count(&session), answering);
        assert_eq!(count, None);
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn nothing_is_asked_of_a_guest_that_is_paused_or_older() {
    let (session, mut guest) = connect().await;
    let mut counter = ProcessCounter::default();
    session.pause(false);
    assert_eq!(counter.count(&session).await, None);
    session.resume();
    settle(&session, &mut guest).await;

    let older = Hello {
        capabilities: Capabilities::ALL.difference(Capabilities::PROCESS_COUNT),
        ..Hello::new("vmcell-agent 0.1.0", GUEST_WINDOW, BOOT_ID)
    };
    let older = frames(|out| encode::hello(out, &older).unwrap());
    let (session, mut guest) = connect_to(&older).await;
    let session = session.unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    assert_eq!(counter.count(&session).await, None);
    settle(&session, &mut guest).await;
}
