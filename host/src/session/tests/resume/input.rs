//! Standard input that was sent and may not have arrived.

use super::*;

#[tokio::test]
async fn input_is_sent_again_from_where_the_agent_stands() {
    for ended in [false, true] {
        let (session, mut guest) = connect_serial_with_window(100).await;
        let mut stream = open_started(&session, &mut guest).await;
        let (id, input) = (stream.id, stream.input());
        let all = pattern(1000);
        assert!(input.write(Bytes::copy_from_slice(&all[..100])).await);
        guest.recv_data(id, 100).await;
        guest.send(&credit(id, 30)).await;
        assert!(input.write(Bytes::copy_from_slice(&all[100..115])).await);
        assert!(input.write(Bytes::copy_from_slice(&all[115..130])).await);
        guest.recv_data(id, 30).await;
        if ended {
            input.end();
            assert_eq!(guest.recv().await, Some(FromHost::End(id)));
        }
        // Nothing, a part, and the rest of what is under way has been taken.
        for (taken, window) in [(30, 100), (30, 102), (31, 100), (110, 20), (115, 15)] {
            session.drop_link();
            guest.answer_reset(100).await;
            guest.recv_resume(id).await;
            // Nothing is sent before the answer.
            settle(&session, &mut guest).await;
            let stdin = Some(at(taken, window));
            guest.send(&attached(id, 0, 0, stdin)).await;
            let received = guest.recv_data(id, 130 - taken as usize).await;
            assert_eq!(received, all[taken as usize..130]);
            if ended {
                assert_eq!(guest.recv().await, Some(FromHost::End(id)));
            }
            settle(&session, &mut guest).await;
        }
        session.drop_link();
        guest.answer_reset(100).await;
        guest.recv_resume(id).await;
        guest.send(&attached(id, 0, 0, Some(at(130, 50)))).await;
        if ended {
            assert_eq!(guest.recv().await, Some(FromHost::End(id)));
            assert!(!input.write(Bytes::from_static(b"x")).await);
        } else {
            let more = Bytes::copy_from_slice(&all[130..200]);
            let write = tokio::spawn(async move { input.write(more).await });
            assert_eq!(guest.recv_data(id, 50).await, all[130..180]);
            settle(&session, &mut guest).await;
            guest.send(&credit(id, 50)).await;
            assert_eq!(guest.recv_data(id, 20).await, all[180..200]);
            assert!(write.await.unwrap());
        }
        finish(&mut stream, &mut guest, 0).await;
    }
}

#[tokio::test]
async fn input_waits_until_the_agent_has_said_where_it_stands() {
    let (session, mut guest) = connect_serial_with_window(100).await;
    let stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from_static(b"one")).await);
    assert_eq!(guest.recv_data(id, 3).await, b"one");
    session.drop_link();
    guest.answer_reset(100).await;
    guest.recv_resume(id).await;
    let write = tokio::spawn(async move { input.write(Bytes::from_static(b"two")).await });
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    let stdin = at(1, 100);
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    assert_eq!(guest.recv_data(id, 5).await, b"netwo");
    assert!(write.await.unwrap());
}

#[tokio::test]
async fn what_was_meant_for_a_link_that_is_gone_is_not_sent_on_the_next() {
    let outgoing = Outgoing::default();
    let id = StreamId::new(1).unwrap();
    let old = outgoing.epoch();
    let add = |epoch| {
        let header = encode::data_header(id, Channel::Stdin, 1).unwrap();
        outgoing.data(epoch, header, Bytes::from_static(b"x"));
        outgoing.ack(epoch, id);
        let cancel = |out: &mut Vec<u8>| {
            encode::cancel(out, id);
            Ok(())
        };
        outgoing.control(epoch, cancel).unwrap();
        outgoing.request(epoch, cancel).unwrap();
    };
    add(old);
    let new = outgoing.start_next_epoch();
    add(old);
    assert_eq!(outgoing.unsent_control(), 0);
    add(new);
    let sent = outgoing.take().await;
    assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), 9 + 8 + 8 + 8);
}

#[tokio::test]
async fn input_that_ends_while_there_is_no_link_ends_on_the_next() {
    let (session, mut guest) = connect_serial().await;
    let stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    session.drop_link();
    let (nonce, _) = guest.recv_reset().await;
    input.end();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    guest.recv_resume(id).await;
    let stdin = at(0, GUEST_WINDOW);
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    assert_eq!(guest.recv().await, Some(FromHost::End(id)));
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn input_that_waits_is_told_when_the_process_was_found_to_read_no_more() {
    let (session, mut guest) = connect_serial_with_window(3).await;
    let stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    let write = tokio::spawn(async move { input.write(Bytes::from_static(b"four")).await });
    guest.recv_data(id, 3).await;
    session.drop_link();
    guest.answer_reset(3).await;
    guest.recv_resume(id).await;
    guest.send(&attached(id, 0, 0, None)).await;
    assert!(!write.await.unwrap());
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn an_absurd_position_of_the_input_is_refused() {
    for stdin in [
        // After what was sent, and before what credit was granted for.
        at(101, 100),
        at(29, 100),
        at(u64::MAX, 100),
        // Less room than there was.
        at(30, 69),
        // More than the largest window.
        at(30, MAX_WINDOW + 1),
        at(100, u32::MAX),
    ] {
        let (session, mut guest) = connect_serial_with_window(100).await;
        let stream = open_started(&session, &mut guest).await;
        let (id, input) = (stream.id, stream.input());
        assert!(input.write(Bytes::from(pattern(100))).await);
        guest.recv_data(id, 100).await;
        guest.send(&credit(id, 30)).await;
        settle(&session, &mut guest).await;
        session.drop_link();
        guest.answer_reset(100).await;
        guest.recv_resume(id).await;
        guest.send(&attached(id, 0, 0, Some(stdin))).await;
        let error = link_error(&session).await;
        assert!(
            matches!(error, LinkError::Violation(_)),
            "{stdin:?}: {error:?}"
        );
        assert!(!input.write(Bytes::from_static(b"x")).await);
    }
}

#[tokio::test]
async fn the_end_of_an_input_is_told_to_a_process_that_is_found_late() {
    for drops in [0, 1, 2] {
        let (session, mut guest) = connect_serial().await;
        let requested = attach(Selector::Pid(PID), true);
        let stream = session.open(&Request::Attach(requested)).unwrap();
        let (id, input) = (stream.id, stream.input());
        assert_eq!(guest.recv().await, Some(FromHost::Attach(id, requested)));
        input.end();
        let mut ended = Vec::new();
        for _ in 0..drops {
            session.drop_link();
            guest.answer_reset(GUEST_WINDOW).await;
            assert_eq!(guest.recv().await, Some(FromHost::Attach(id, requested)));
            ended = settle_past(&session, &mut guest).await;
        }
        let stdin = at(3, GUEST_WINDOW);
        guest.send(&attached(id, 0, 0, Some(stdin))).await;
        ended.extend(settle_past(&session, &mut guest).await);
        ended.extend(settle_past(&session, &mut guest).await);
        assert_eq!(ended, [FromHost::End(id)], "after {drops} links");
    }
}
