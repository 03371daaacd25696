//! The offsets at which a process is resumed.

use super::*;

#[tokio::test]
async fn a_stream_is_resumed_where_it_was_with_room_for_what_fits() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    let bytes = pattern(400_000);
    guest
        .send(&data(id, Channel::Stdout, &bytes[..200_000]))
        .await;
    guest
        .send(&data(id, Channel::Stdout, &bytes[200_000..300_000]))
        .await;
    guest.send(&data(id, Channel::Stderr, b"error")).await;
    settle(&session, &mut guest).await;

    // Nothing was read.
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let expected = Resume {
        ticket: TICKET,
        stdout: at(300_000, WINDOW - 300_000),
        stderr: at(5, WINDOW - 5),
    };
    assert_eq!(guest.recv_resume(id).await, expected);
    guest.send(&attached(id, 300_000, 5, None)).await;
    settle(&session, &mut guest).await;

    // A part was.
    let mut read = Vec::new();
    while read.is_empty() {
        if let Some(StreamEvent::Data(_, part)) =
            stream
                .state
                .lock()
                .take_output(&stream.shared, Channel::Stdout, 120_000)
        {
            read.extend(part);
        }
    }
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let expected = Resume {
        stdout: at(300_000, WINDOW - 180_000),
        ..expected
    };
    assert_eq!(guest.recv_resume(id).await, expected);
    guest.send(&attached(id, 300_000, 5, None)).await;

    // Everything was.
    let mut errors = Vec::new();
    while read.len() < 300_000 || errors.is_empty() {
        match stream.next().await {
            Ok(StreamEvent::Data(Channel::Stdout, part)) => read.extend(part),
            Ok(StreamEvent::Data(_, part)) => errors.extend(part),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(errors, b"error");
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let expected = Resume {
        stdout: at(300_000, WINDOW),
        stderr: at(5, WINDOW),
        ..expected
    };
    assert_eq!(guest.recv_resume(id).await, expected);
    guest.send(&attached(id, 300_000, 5, None)).await;
    guest
        .send(&data(id, Channel::Stdout, &bytes[300_000..]))
        .await;
    guest.send(&ends(id)).await;
    let exit = Exit {
        stderr_bytes: 5,
        ..exit(400_000)
    };
    guest.send(&close(id, &Outcome::Exited(exit))).await;
    let (rest, end) = read_to_end(&mut stream).await;
    read.extend(rest);
    assert!(read == bytes, "{} bytes arrived", read.len());
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
}

#[tokio::test]
async fn what_was_not_read_before_the_link_broke_counts_against_the_window() {
    for over in [0, 1] {
        let (session, mut guest) = connect_serial().await;
        let mut stream = open_started(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&data(id, Channel::Stdout, &[1; 250_000])).await;
        settle(&session, &mut guest).await;
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        let position = guest.recv_resume(id).await.stdout;
        guest.send(&attached(id, 250_000, 0, None)).await;
        let rest = vec![2; position.window as usize + over];
        for part in rest.chunks(MAX_PAYLOAD as usize) {
            guest.send(&data(id, Channel::Stdout, part)).await;
        }
        if over == 1 {
            let overrun = LinkError::Violation(WireError::Overrun(Channel::Stdout));
            assert_eq!(link_error(&session).await, overrun);
            continue;
        }
        settle(&session, &mut guest).await;
        assert_eq!(held(&stream, Channel::Stdout), u64::from(WINDOW));
        // Credit comes for all that is read, on whichever link it came.
        let mut read = 0;
        while read < WINDOW as usize {
            match stream.next().await {
                Ok(StreamEvent::Data(_, bytes)) => read += bytes.len(),
                other => panic!("{other:?}"),
            }
        }
        let granted = recv_credit(&session, &mut guest, id, Channel::Stdout).await;
        assert_eq!(granted, WINDOW);
    }
}

#[tokio::test]
async fn outputs_that_had_ended_end_again() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"all")).await;
    guest.send(&ends(id)).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv_resume(id).await.stdout, at(3, WINDOW - 3));
    guest.send(&attached(id, 3, 0, None)).await;
    assert_eq!(finish(&mut stream, &mut guest, 3).await, b"all");
}

#[tokio::test]
async fn a_process_is_taken_up_at_the_asked_offsets_or_not_at_all() {
    for (stdout, stderr) in [(4, 3), (6, 3), (5, 2), (5, 4), (0, 0), (u64::MAX, 3)] {
        let (session, mut guest) = connect_serial().await;
        let stream = open_started(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&data(id, Channel::Stdout, b"12345")).await;
        guest.send(&data(id, Channel::Stderr, b"123")).await;
        settle(&session, &mut guest).await;
        session.drop_link();
        guest.answer_reset(GUEST_WINDOW).await;
        guest.recv_resume(id).await;
        guest.send(&attached(id, stdout, stderr, None)).await;
        let malformed = LinkError::Violation(WireError::Malformed);
        assert_eq!(link_error(&session).await, malformed, "{stdout} {stderr}");
    }
}

#[tokio::test]
async fn a_process_is_taken_up_once_for_each_link() {
    let (session, mut guest) = connect_serial().await;
    let stream = open_started(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    guest.recv_resume(stream.id).await;
    guest.send(&attached(stream.id, 0, 0, None)).await;
    settle(&session, &mut guest).await;
    guest.send(&attached(stream.id, 0, 0, None)).await;
    assert_eq!(
        link_error(&session).await,
        LinkError::Violation(WireError::Malformed)
    );
}

#[tokio::test]
async fn a_cancelled_stream_is_taken_up_and_cancelled_again() {
    for dropped in [false, true] {
        for before in [false, true] {
            let (session, mut guest) = connect_serial().await;
            let stream = open_started(&session, &mut guest).await;
            let id = stream.id;
            let mut stream = Some(stream);
            let cancel = |stream: &mut Option<Stream>| match dropped {
                true => drop(stream.take()),
                false => stream.as_ref().unwrap().cancel(),
            };
            if before {
                cancel(&mut stream);
                assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
            }
            session.drop_link();
            let (nonce, _) = guest.recv_reset().await;
            if !before {
                cancel(&mut stream);
            }
            assert_eq!(guest.recv().await, Some(FromHost::Hello));
            let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
            guest.send(&answer).await;
            guest.recv_resume(id).await;
            assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
            guest.send(&attached(id, 0, 0, None)).await;
            guest.send(&data(id, Channel::Stdout, b"late")).await;
            // A cancelled process may have printed more than arrived.
            guest.send(&exited(id, 1000)).await;
            if let Some(stream) = &mut stream {
                let (_, end) = read_to_end(stream).await;
                assert!(
                    matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
                    "{end:?}"
                );
            }
            settle(&session, &mut guest).await;
            settle(&session, &mut guest).await;
            assert!(guest.acks.contains(&id));
        }
    }
}

#[tokio::test]
async fn a_watched_process_is_found_again_by_the_number_that_the_agent_told() {
    let (session, mut guest) = connect_serial().await;
    let requested = Attach {
        stdout: Some(at(Position::NOW, WINDOW)),
        stderr: None,
        ..attach(Selector::Tag("a tag"), true)
    };
    let mut stream = session.open(&Request::Attach(requested)).unwrap();
    let (id, input) = (stream.id, stream.input());
    assert_eq!(guest.recv().await, Some(FromHost::Attach(id, requested)));
    // Until the agent has answered, the caller's request is repeated.
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv().await, Some(FromHost::Attach(id, requested)));
    let stdin = at(70, GUEST_WINDOW);
    guest.send(&attached(id, 1000, 333, Some(stdin))).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Attached(_))), "{event:?}");
    assert_eq!(stream.offset(Channel::Stdout), 1000);
    guest.send(&data(id, Channel::Stdout, b"more")).await;
    assert!(input.write(Bytes::from_static(b"input")).await);
    assert_eq!(guest.recv_data(id, 5).await, b"input");
    settle(&session, &mut guest).await;

    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let by_id = Attach {
        process: Selector::Id(ID),
        stdout: Some(at(1004, WINDOW - 4)),
        ..requested
    };
    assert_eq!(guest.recv().await, Some(FromHost::Attach(id, by_id)));
    let stdin = at(72, GUEST_WINDOW);
    // The offset of an output that was not requested is ignored.
    guest.send(&attached(id, 1004, 9, Some(stdin))).await;
    assert_eq!(guest.recv_data(id, 3).await, b"put");
    guest.send(&exited(id, 1004)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"more");
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
}

#[tokio::test]
async fn a_watched_process_that_is_gone_is_an_error() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = watch(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert!(matches!(guest.recv().await, Some(FromHost::Attach(..))));
    guest.send(&not_found(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Failed(_))),
        "{end:?}"
    );
    settle(&session, &mut guest).await;
}
