//! Links that break and are made anew.

use super::*;

fn at(offset: u64, window: u32) -> Position {
    Position { offset, window }
}

/// The agent's word that it does not know what it is asked for.
fn not_found(stream: StreamId) -> Vec<u8> {
    let failure = Failure::new(FailureKind::NotFound, Stage::Process, "there is none");
    close(stream, &Outcome::Failed(failure))
}

/// A stream whose process is known to run.
async fn open_started(session: &Session, guest: &mut Guest) -> Stream {
    let mut stream = open(session, guest).await;
    guest.send(&started(stream.id)).await;
    expect_started(&mut stream).await;
    stream
}

async fn expect_started(stream: &mut Stream) {
    let event = stream.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
}

/// Ends a process that printed so much in all, and checks that the host agrees.
async fn finish(stream: &mut Stream, guest: &mut Guest, stdout_bytes: u64) -> Vec<u8> {
    guest.send(&ends(stream.id)).await;
    guest.send(&exited(stream.id, stdout_bytes)).await;
    let (bytes, end) = read_to_end(stream).await;
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
    bytes
}

/// How much of an output the host holds.
fn held(stream: &Stream, channel: Channel) -> u64 {
    let inner = stream.state.lock();
    let inbox = match channel {
        Channel::Stderr => &inner.stderr,
        _ => &inner.stdout,
    };
    inbox.arrived() - inbox.offset()
}

async fn lost(session: &Session) -> Lost {
    let mut lost = session.lost();
    lost.wait_for(Option::is_some).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_reset_and_a_hello_are_the_first_words_on_a_new_link() {
    let (session, mut guest) = connect_port().await;
    let mut nonces = Vec::new();
    for _ in 0..3 {
        session.drop_link();
        let (nonce, before) = guest.hear_reset().await;
        assert_eq!(before, []);
        assert_eq!(guest.hear_all().await, Some(Heard::Hello));
        assert!(!nonces.contains(&nonce), "a nonce came twice");
        nonces.push(nonce);
        let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
        guest.send(&answer).await;
        settle(&session, &mut guest).await;
    }
}

#[tokio::test]
async fn a_reset_is_sent_in_the_middle_of_a_frame_if_need_be() {
    const INPUT: usize = 2 * 1024 * 1024;
    let (session, mut guest) = connect_port_with_window(MAX_WINDOW).await;
    let mut stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    let write = tokio::spawn(async move {
        let all = input.write(Bytes::from(pattern(INPUT))).await;
        input.end();
        all
    });
    // More than the socket holds is on its way when the first bytes arrive.
    let Some(Heard::Data(_, first)) = guest.hear().await else {
        panic!("no input came");
    };
    session.drop_link();
    let mut decoder = std::mem::replace(&mut guest.decoder, Decoder::new(Peer::Host));
    let (nonce, before) = guest.hear_reset().await;
    let mut input = &before[..];
    let mut received = first;
    while let Some(item) = decoder.decode(&mut input).unwrap() {
        match item {
            Item::Data { bytes, .. } => received.extend_from_slice(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert!(decoder.pending_data().is_some(), "it was between frames");
    assert!(pattern(INPUT).starts_with(&received));

    assert_eq!(guest.hear().await, Some(Heard::Hello));
    let answer = [&nonce[..], &hello(MAX_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    guest.hear_resume(id).await;
    let stdin = at(received.len() as u64, MAX_WINDOW);
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    let rest = guest.hear_data(id, INPUT - received.len()).await;
    assert!(rest == pattern(INPUT)[received.len()..]);
    assert_eq!(guest.hear().await, Some(Heard::End(id)));
    assert!(write.await.unwrap());
    finish(&mut stream, &mut guest, 0).await;
}

#[tokio::test]
async fn whatever_comes_before_the_answer_to_the_reset_is_skipped() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    // The first bytes of a frame, whose rest comes too late.
    let half = data(id, Channel::Stdout, &pattern(100_000));
    guest.send(&data(id, Channel::Stdout, b"before ")).await;
    guest.send(&half[..20]).await;
    settle_on(&mut stream, 7 + 12).await;
    session.drop_link();
    let (nonce, _) = guest.hear_reset().await;
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    let mut late = half[20..].to_vec();
    late.extend(data(id, Channel::Stdout, b"old"));
    late.extend(close(id, &Outcome::Pong));
    late.extend(hello(GUEST_WINDOW, [8; 16]));
    late.extend([0xff; 70_000]);
    // Nearly the answer, and then the answer at once.
    late.extend(&nonce[..RESET_PART - 1]);
    late.extend(&nonce[..1]);
    late.extend(nonce);
    late.extend(hello(GUEST_WINDOW, BOOT_ID));
    let sending = async {
        for part in late.chunks(9_999) {
            guest.send(part).await;
            tokio::task::yield_now().await;
        }
        guest.hear_resume(id).await
    };
    assert_eq!(sending.await.stdout, at(19, WINDOW - 19));
    guest.send(&attached(id, 19, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b" after")).await;
    let bytes = finish(&mut stream, &mut guest, 25).await;
    assert_eq!(
        bytes,
        [b"before ", &pattern(100_000)[..12], b" after"].concat()
    );
}

/// Waits until so much of standard output has come, and leaves it there.
async fn settle_on(stream: &mut Stream, count: u64) {
    std::future::poll_fn(|context| {
        let mut inner = stream.state.lock();
        if inner.stdout.arrived() >= count {
            return std::task::Poll::Ready(());
        }
        inner.wakers().events = Some(context.waker().clone());
        std::task::Poll::Pending
    })
    .await;
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_understood() {
    let (session, mut guest) = connect_port().await;
    session.drop_link();
    let (nonce, _) = guest.hear_reset().await;
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    for byte in [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat() {
        guest.send(&[byte]).await;
        tokio::task::yield_now().await;
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_stream_is_resumed_where_it_was_with_room_for_what_fits() {
    let (session, mut guest) = connect_port().await;
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
    guest.relink(GUEST_WINDOW).await;
    let expected = Resume {
        ticket: TICKET,
        stdout: at(300_000, WINDOW - 300_000),
        stderr: at(5, WINDOW - 5),
    };
    assert_eq!(guest.hear_resume(id).await, expected);
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
    guest.relink(GUEST_WINDOW).await;
    let expected = Resume {
        stdout: at(300_000, WINDOW - 180_000),
        ..expected
    };
    assert_eq!(guest.hear_resume(id).await, expected);
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
    guest.relink(GUEST_WINDOW).await;
    let expected = Resume {
        stdout: at(300_000, WINDOW),
        stderr: at(5, WINDOW),
        ..expected
    };
    assert_eq!(guest.hear_resume(id).await, expected);
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
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
}

#[tokio::test]
async fn what_was_not_read_before_the_link_broke_counts_against_the_window() {
    for over in [0, 1] {
        let (session, mut guest) = connect_port().await;
        let mut stream = open_started(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&data(id, Channel::Stdout, &[1; 250_000])).await;
        settle(&session, &mut guest).await;
        session.drop_link();
        guest.relink(GUEST_WINDOW).await;
        let position = guest.hear_resume(id).await.stdout;
        guest.send(&attached(id, 250_000, 0, None)).await;
        let rest = vec![2; position.window as usize + over];
        for part in rest.chunks(MAX_PAYLOAD as usize) {
            guest.send(&data(id, Channel::Stdout, part)).await;
        }
        if over == 1 {
            let overrun = Lost::Violation(WireError::Overrun(Channel::Stdout));
            assert_eq!(lost(&session).await, overrun);
            continue;
        }
        settle(&session, &mut guest).await;
        assert_eq!(held(&stream, Channel::Stdout), WINDOW.into());
        // Credit comes for all that is read, on whichever link it came.
        let mut read = 0;
        while read < WINDOW as usize {
            match stream.next().await {
                Ok(StreamEvent::Data(_, bytes)) => read += bytes.len(),
                other => panic!("{other:?}"),
            }
        }
        let granted = hear_credit(&session, &mut guest, id, Channel::Stdout).await;
        assert_eq!(granted, WINDOW);
    }
}

#[tokio::test]
async fn outputs_that_had_ended_end_again() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"all")).await;
    guest.send(&ends(id)).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    assert_eq!(guest.hear_resume(id).await.stdout, at(3, WINDOW - 3));
    guest.send(&attached(id, 3, 0, None)).await;
    assert_eq!(finish(&mut stream, &mut guest, 3).await, b"all");
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_made_up_for() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    for _ in 0..2 {
        session.drop_link();
        guest.relink(GUEST_WINDOW).await;
        assert_eq!(guest.hear_resume(id).await.ticket, TICKET);
        // More than once if need be: the answer is lost again.
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
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    for _ in 0..3 {
        session.drop_link();
        guest.relink(GUEST_WINDOW).await;
        guest.hear_resume(id).await;
        guest.send(&attached(id, 0, 0, None)).await;
        settle(&session, &mut guest).await;
    }
    guest.send(&data(id, Channel::Stdout, b"x")).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Data(..))), "{event:?}");
    guest.send(&started(id)).await;
    assert_eq!(lost(&session).await, Lost::Violation(WireError::Malformed));
}

#[tokio::test]
async fn a_process_that_the_agent_never_heard_of_is_started_with_its_input() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from(pattern(10_000))).await);
    assert!(input.write(Bytes::from_static(b"the end")).await);
    // Nothing of this was read by anybody.
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    assert_eq!(guest.hear_resume(id).await.stdout, at(0, WINDOW));
    input.end();
    guest.send(&not_found(id)).await;
    assert_eq!(guest.hear_all().await, Some(Heard::Ack(id)));
    assert_eq!(guest.hear_all().await, Some(Heard::Start(id, TICKET)));
    let heard = guest.hear_data(id, 10_007).await;
    assert_eq!(heard, [&pattern(10_000)[..], b"the end"].concat());
    assert_eq!(guest.hear_all().await, Some(Heard::End(id)));
    guest.send(&started(id)).await;
    expect_started(&mut stream).await;
    guest.send(&data(id, Channel::Stdout, b"hello")).await;
    assert_eq!(finish(&mut stream, &mut guest, 5).await, b"hello");
    settle(&session, &mut guest).await;
    assert_eq!(guest.acks, [id]);
}

#[tokio::test]
async fn a_start_that_is_lost_again_and_again_is_sent_again_and_again() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from_static(b"input")).await);
    guest.hear_data(id, 5).await;
    for _ in 0..3 {
        session.drop_link();
        guest.relink(GUEST_WINDOW).await;
        guest.hear_resume(id).await;
        guest.send(&not_found(id)).await;
        assert_eq!(guest.hear().await, Some(Heard::Start(id, TICKET)));
        assert_eq!(guest.hear_data(id, 5).await, b"input");
    }
    // The window is as for any start.
    let more = pattern(GUEST_WINDOW as usize);
    let write = tokio::spawn(async move { input.write(more.into()).await });
    let expected = &pattern(GUEST_WINDOW as usize)[..GUEST_WINDOW as usize - 5];
    assert!(guest.hear_data(id, expected.len()).await == expected);
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    guest.send(&started(id)).await;
    finish(&mut stream, &mut guest, 0).await;
    assert!(!write.await.unwrap());
}

#[tokio::test]
async fn a_process_that_ran_and_is_unknown_now_is_an_error() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"begun")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    guest.hear_resume(id).await;
    guest.send(&not_found(id)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"begun");
    let Ok(Closing::Failed(failed)) = end else {
        panic!("{end:?}");
    };
    assert_eq!(failed.kind, FailureKind::NotFound);
    settle(&session, &mut guest).await;
    assert!(guest.acks.contains(&id));
}

#[tokio::test]
async fn another_refusal_than_not_found_does_not_start_it_twice() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open(&session, &mut guest).await;
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    guest.hear_resume(stream.id).await;
    let failure = Failure::new(FailureKind::Limit, Stage::Clone, "too many");
    guest
        .send(&close(stream.id, &Outcome::Failed(failure)))
        .await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(matches!(end, Ok(Closing::Failed(_))), "{end:?}");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_program_that_was_not_found_is_not_looked_for_again() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open(&session, &mut guest).await;
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    guest.hear_resume(stream.id).await;
    guest.send(&not_found(stream.id)).await;
    assert_eq!(guest.hear().await, Some(Heard::Start(stream.id, TICKET)));
    // This is the answer to the start.
    guest.send(&not_found(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(matches!(end, Ok(Closing::Failed(_))), "{end:?}");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn input_is_sent_again_from_where_the_agent_stands() {
    for ended in [false, true] {
        let (session, mut guest) = connect_port_with_window(100).await;
        let mut stream = open_started(&session, &mut guest).await;
        let (id, input) = (stream.id, stream.input());
        let all = pattern(1000);
        assert!(input.write(Bytes::copy_from_slice(&all[..100])).await);
        guest.hear_data(id, 100).await;
        guest.send(&credit(id, 30)).await;
        assert!(input.write(Bytes::copy_from_slice(&all[100..115])).await);
        assert!(input.write(Bytes::copy_from_slice(&all[115..130])).await);
        guest.hear_data(id, 30).await;
        if ended {
            input.end();
            assert_eq!(guest.hear().await, Some(Heard::End(id)));
        }
        // Nothing, a part, and the rest of what is under way has been taken.
        for (taken, window) in [(30, 100), (30, 102), (31, 100), (110, 20), (115, 15)] {
            session.drop_link();
            guest.relink(100).await;
            guest.hear_resume(id).await;
            // Before the answer nobody knows what may be sent.
            settle(&session, &mut guest).await;
            let stdin = Some(at(taken, window));
            guest.send(&attached(id, 0, 0, stdin)).await;
            let heard = guest.hear_data(id, 130 - taken as usize).await;
            assert_eq!(heard, all[taken as usize..130]);
            if ended {
                assert_eq!(guest.hear().await, Some(Heard::End(id)));
            }
            settle(&session, &mut guest).await;
        }
        session.drop_link();
        guest.relink(100).await;
        guest.hear_resume(id).await;
        guest.send(&attached(id, 0, 0, Some(at(130, 50)))).await;
        if ended {
            assert_eq!(guest.hear().await, Some(Heard::End(id)));
            assert!(!input.write(Bytes::from_static(b"x")).await);
        } else {
            let more = Bytes::copy_from_slice(&all[130..200]);
            let write = tokio::spawn(async move { input.write(more).await });
            assert_eq!(guest.hear_data(id, 50).await, all[130..180]);
            settle(&session, &mut guest).await;
            guest.send(&credit(id, 50)).await;
            assert_eq!(guest.hear_data(id, 20).await, all[180..200]);
            assert!(write.await.unwrap());
        }
        finish(&mut stream, &mut guest, 0).await;
    }
}

#[tokio::test]
async fn input_waits_until_the_agent_has_said_where_it_stands() {
    let (session, mut guest) = connect_port_with_window(100).await;
    let stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from_static(b"one")).await);
    assert_eq!(guest.hear_data(id, 3).await, b"one");
    session.drop_link();
    guest.relink(100).await;
    guest.hear_resume(id).await;
    let write = tokio::spawn(async move { input.write(Bytes::from_static(b"two")).await });
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    let stdin = at(1, 100);
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    assert_eq!(guest.hear_data(id, 5).await, b"netwo");
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
    let new = outgoing.begin_anew();
    add(old);
    assert_eq!(outgoing.unsent_control(), 0);
    add(new);
    let sent = outgoing.take().await;
    assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), 9 + 8 + 8 + 8);
}

#[tokio::test]
async fn input_that_ends_while_there_is_no_link_ends_on_the_next() {
    let (session, mut guest) = connect_port().await;
    let stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    session.drop_link();
    let (nonce, _) = guest.hear_reset().await;
    input.end();
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    guest.hear_resume(id).await;
    let stdin = at(0, GUEST_WINDOW);
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    assert_eq!(guest.hear().await, Some(Heard::End(id)));
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn input_that_waits_is_told_when_the_process_was_found_to_read_no_more() {
    let (session, mut guest) = connect_port_with_window(3).await;
    let stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    let write = tokio::spawn(async move { input.write(Bytes::from_static(b"four")).await });
    guest.hear_data(id, 3).await;
    session.drop_link();
    guest.relink(3).await;
    guest.hear_resume(id).await;
    guest.send(&attached(id, 0, 0, None)).await;
    assert!(!write.await.unwrap());
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn an_absurd_position_of_the_input_is_refused() {
    for stdin in [
        // Behind what was sent, and before what credit came for.
        at(101, 100),
        at(29, 100),
        at(u64::MAX, 100),
        // Less room than there was.
        at(30, 69),
        // More than anybody may grant.
        at(30, MAX_WINDOW + 1),
        at(100, u32::MAX),
    ] {
        let (session, mut guest) = connect_port_with_window(100).await;
        let stream = open_started(&session, &mut guest).await;
        let (id, input) = (stream.id, stream.input());
        assert!(input.write(Bytes::from(pattern(100))).await);
        guest.hear_data(id, 100).await;
        guest.send(&credit(id, 30)).await;
        settle(&session, &mut guest).await;
        session.drop_link();
        guest.relink(100).await;
        guest.hear_resume(id).await;
        guest.send(&attached(id, 0, 0, Some(stdin))).await;
        let lost = lost(&session).await;
        assert!(matches!(lost, Lost::Violation(_)), "{stdin:?}: {lost:?}");
        assert!(!input.write(Bytes::from_static(b"x")).await);
    }
}

#[tokio::test]
async fn a_process_is_taken_up_at_the_asked_offsets_or_not_at_all() {
    for (stdout, stderr) in [(4, 3), (6, 3), (5, 2), (5, 4), (0, 0), (u64::MAX, 3)] {
        let (session, mut guest) = connect_port().await;
        let stream = open_started(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&data(id, Channel::Stdout, b"12345")).await;
        guest.send(&data(id, Channel::Stderr, b"123")).await;
        settle(&session, &mut guest).await;
        session.drop_link();
        guest.relink(GUEST_WINDOW).await;
        guest.hear_resume(id).await;
        guest.send(&attached(id, stdout, stderr, None)).await;
        let malformed = Lost::Violation(WireError::Malformed);
        assert_eq!(lost(&session).await, malformed, "{stdout} {stderr}");
    }
}

#[tokio::test]
async fn a_process_is_taken_up_once_for_each_link() {
    let (session, mut guest) = connect_port().await;
    let stream = open_started(&session, &mut guest).await;
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    guest.hear_resume(stream.id).await;
    guest.send(&attached(stream.id, 0, 0, None)).await;
    settle(&session, &mut guest).await;
    guest.send(&attached(stream.id, 0, 0, None)).await;
    assert_eq!(lost(&session).await, Lost::Violation(WireError::Malformed));
}

#[tokio::test]
async fn a_cancelled_stream_is_taken_up_and_cancelled_again() {
    for dropped in [false, true] {
        for before in [false, true] {
            let (session, mut guest) = connect_port().await;
            let stream = open_started(&session, &mut guest).await;
            let id = stream.id;
            let mut stream = Some(stream);
            let cancel = |stream: &mut Option<Stream>| match dropped {
                true => drop(stream.take()),
                false => stream.as_ref().unwrap().cancel(),
            };
            if before {
                cancel(&mut stream);
                assert_eq!(guest.hear().await, Some(Heard::Cancel(id)));
            }
            session.drop_link();
            let (nonce, _) = guest.hear_reset().await;
            if !before {
                cancel(&mut stream);
            }
            assert_eq!(guest.hear().await, Some(Heard::Hello));
            let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
            guest.send(&answer).await;
            guest.hear_resume(id).await;
            assert_eq!(guest.hear().await, Some(Heard::Cancel(id)));
            guest.send(&attached(id, 0, 0, None)).await;
            guest.send(&data(id, Channel::Stdout, b"late")).await;
            // It need not say everything any more.
            guest.send(&exited(id, 1000)).await;
            if let Some(stream) = &mut stream {
                let (_, end) = read_to_end(stream).await;
                assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
            }
            settle(&session, &mut guest).await;
            settle(&session, &mut guest).await;
            assert!(guest.acks.contains(&id));
        }
    }
}

#[tokio::test]
async fn a_cancelled_start_that_never_arrived_is_not_sent_again() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open(&session, &mut guest).await;
    stream.cancel();
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    guest.hear_resume(stream.id).await;
    assert_eq!(guest.hear().await, Some(Heard::Cancel(stream.id)));
    guest.send(&not_found(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(matches!(end, Ok(Closing::Failed(_))), "{end:?}");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_signal_may_have_been_sent_or_not_and_that_is_said() {
    let (session, mut guest) = connect_port().await;
    let signal = Request::Signal {
        process: Selector::Id(ID),
        signal: 15,
    };
    let mut stream = session.open(&signal).unwrap();
    assert_eq!(guest.hear().await, Some(Heard::Open(stream.id)));
    session.drop_link();
    let lost = stream.next().await.unwrap_err();
    assert_eq!(lost, Lost::Dropped);
    assert!(lost.to_string().contains("under way"), "{lost}");
    // Nobody else suffers, and nothing is sent twice.
    guest.relink(GUEST_WINDOW).await;
    settle(&session, &mut guest).await;
    let mut again = session.open(&signal).unwrap();
    assert_ne!(again.id, stream.id);
    assert_eq!(guest.hear().await, Some(Heard::Open(again.id)));
    guest.send(&close(again.id, &Outcome::Done)).await;
    let event = again.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Closed(Closing::Done))),
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
        let (session, mut guest) = connect_port().await;
        let mut stream = session.open(&request).unwrap();
        assert_eq!(guest.hear().await, Some(Heard::Open(stream.id)));
        for _ in 0..2 {
            session.drop_link();
            guest.relink(GUEST_WINDOW).await;
            assert_eq!(guest.hear().await, Some(Heard::Open(stream.id)));
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
async fn a_start_in_the_background_is_asked_again_with_its_ticket() {
    let (session, mut guest) = connect_port().await;
    let background = Start {
        lifetime: Lifetime::Background,
        ..start(99)
    };
    let mut stream = session.open(&Request::Start(background)).unwrap();
    assert_eq!(guest.hear().await, Some(Heard::Start(stream.id, 99)));
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    assert_eq!(guest.hear().await, Some(Heard::Start(stream.id, 99)));
    let spawned = Outcome::Spawned { id: ID, pid: PID };
    guest.send(&close(stream.id, &spawned)).await;
    let event = stream.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Closed(Closing::Spawned { .. }))),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_list_shows_no_process_twice() {
    let (session, mut guest) = connect_port().await;
    let mut stream = session.open(&Request::List { after: 0 }).unwrap();
    let id = stream.id;
    assert_eq!(guest.hear().await, Some(Heard::Open(id)));
    for process in [1, 2, 4] {
        guest.send(&listed(id, process)).await;
    }
    settle(&session, &mut guest).await;
    let mut shown = vec![next_listed(&mut stream).await];
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    assert_eq!(guest.hear().await, Some(Heard::Open(id)));
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
        matches!(
            event,
            Ok(StreamEvent::Closed(Closing::EndOfList { more: false }))
        ),
        "{event:?}"
    );
}

async fn next_listed(stream: &mut Stream) -> u32 {
    match stream.next().await {
        Ok(StreamEvent::Listed(listed)) => listed.id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn streams_can_be_opened_and_fed_while_there_is_no_link() {
    let (session, mut guest) = connect_port().await;
    let mut before = open_started(&session, &mut guest).await;
    session.drop_link();
    let (nonce, _) = guest.hear_reset().await;
    let mut stream = session.open(&Request::Start(start(12))).unwrap();
    let (id, input) = (stream.id, stream.input());
    assert!(input.write(Bytes::from_static(b"input")).await);
    input.end();
    // One that nobody wants any more when there is a link.
    let unwanted = session.open(&Request::Start(start(13))).unwrap();
    let unwanted = {
        let id = unwanted.id;
        drop(unwanted);
        id
    };
    assert_eq!(guest.hear().await, Some(Heard::Hello));
    let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    guest.hear_resume(before.id).await;
    guest.send(&attached(before.id, 0, 0, None)).await;
    assert_eq!(guest.hear().await, Some(Heard::Start(id, 12)));
    assert_eq!(guest.hear_data(id, 5).await, b"input");
    assert_eq!(guest.hear().await, Some(Heard::End(id)));
    assert_eq!(guest.hear().await, Some(Heard::Start(unwanted, 13)));
    assert_eq!(guest.hear().await, Some(Heard::Cancel(unwanted)));
    guest.send(&exited(unwanted, 0)).await;
    guest.send(&started(id)).await;
    expect_started(&mut stream).await;
    finish(&mut stream, &mut guest, 0).await;
    finish(&mut before, &mut guest, 0).await;
}

#[tokio::test]
async fn a_stream_that_is_opened_as_the_link_breaks_runs_once() {
    let (session, mut guest) = connect_port().await;
    session.drop_link();
    // The session knows of no break yet.
    let mut stream = session.open(&exec()).unwrap();
    assert!(stream.input().write(Bytes::from_static(b"input")).await);
    guest.relink(GUEST_WINDOW).await;
    let heard = guest.hear().await;
    if let Some(Heard::Resume(..)) = heard {
        guest.send(&not_found(stream.id)).await;
        assert_eq!(guest.hear().await, Some(Heard::Start(stream.id, TICKET)));
    } else {
        assert_eq!(heard, Some(Heard::Start(stream.id, TICKET)));
    }
    assert_eq!(guest.hear_data(stream.id, 5).await, b"input");
    guest.send(&started(stream.id)).await;
    expect_started(&mut stream).await;
    finish(&mut stream, &mut guest, 0).await;
}

#[tokio::test]
async fn a_link_may_break_before_it_was_used() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"one ")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    let (nonce, _) = guest.hear_reset().await;
    session.drop_link();
    let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    // The answer to the request that came with that link, if it came, is late.
    guest.send(&attached(id, 4, 0, None)).await;
    guest.relink(GUEST_WINDOW).await;
    assert_eq!(guest.hear_resume(id).await.stdout, at(4, WINDOW - 4));
    guest.send(&attached(id, 4, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b"two")).await;
    assert_eq!(finish(&mut stream, &mut guest, 7).await, b"one two");
}

#[tokio::test]
async fn a_watched_process_is_found_again_by_the_number_that_the_agent_told() {
    let (session, mut guest) = connect_port().await;
    let asked = Attach {
        stdout: Some(at(Position::NOW, WINDOW)),
        stderr: None,
        ..attach(Selector::Tag("a tag"), true)
    };
    let mut stream = session.open(&Request::Attach(asked)).unwrap();
    let (id, input) = (stream.id, stream.input());
    assert_eq!(guest.hear().await, Some(Heard::Attach(id, asked)));
    // As long as the agent has not answered, in the words of the caller.
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    assert_eq!(guest.hear().await, Some(Heard::Attach(id, asked)));
    let stdin = at(70, GUEST_WINDOW);
    guest.send(&attached(id, 1000, 333, Some(stdin))).await;
    let event = stream.next().await;
    assert!(matches!(event, Ok(StreamEvent::Attached(_))), "{event:?}");
    assert_eq!(stream.offset(Channel::Stdout), 1000);
    guest.send(&data(id, Channel::Stdout, b"more")).await;
    assert!(input.write(Bytes::from_static(b"input")).await);
    assert_eq!(guest.hear_data(id, 5).await, b"input");
    settle(&session, &mut guest).await;

    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    let by_id = Attach {
        process: Selector::Id(ID),
        stdout: Some(at(1004, WINDOW - 4)),
        ..asked
    };
    assert_eq!(guest.hear().await, Some(Heard::Attach(id, by_id)));
    let stdin = at(72, GUEST_WINDOW);
    // What stands there for an output that was not asked for means nothing.
    guest.send(&attached(id, 1004, 9, Some(stdin))).await;
    assert_eq!(guest.hear_data(id, 3).await, b"put");
    guest.send(&exited(id, 1004)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"more");
    assert!(matches!(end, Ok(Closing::Exited(_))), "{end:?}");
}

#[tokio::test]
async fn the_end_of_an_input_is_told_to_a_process_that_is_found_late() {
    for drops in [0, 1, 2] {
        let (session, mut guest) = connect_port().await;
        let asked = attach(Selector::Pid(PID), true);
        let stream = session.open(&Request::Attach(asked)).unwrap();
        let (id, input) = (stream.id, stream.input());
        assert_eq!(guest.hear().await, Some(Heard::Attach(id, asked)));
        input.end();
        let mut ended = Vec::new();
        for _ in 0..drops {
            session.drop_link();
            guest.relink(GUEST_WINDOW).await;
            assert_eq!(guest.hear().await, Some(Heard::Attach(id, asked)));
            ended = settle_past(&session, &mut guest).await;
        }
        let stdin = at(3, GUEST_WINDOW);
        guest.send(&attached(id, 0, 0, Some(stdin))).await;
        ended.extend(settle_past(&session, &mut guest).await);
        ended.extend(settle_past(&session, &mut guest).await);
        assert_eq!(ended, [Heard::End(id)], "after {drops} links");
    }
}

#[tokio::test]
async fn a_watched_process_that_is_gone_is_an_error() {
    let (session, mut guest) = connect_port().await;
    let mut stream = watch(&session, &mut guest).await;
    session.drop_link();
    guest.relink(GUEST_WINDOW).await;
    assert!(matches!(guest.hear().await, Some(Heard::Attach(..))));
    guest.send(&not_found(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert!(matches!(end, Ok(Closing::Failed(_))), "{end:?}");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn another_agent_on_the_new_link_is_refused() {
    let other_build = Hello::new("another guest", GUEST_WINDOW, BOOT_ID);
    let other_build = frames(|out| encode::hello(out, &other_build).unwrap());
    for answer in [
        hello(GUEST_WINDOW, [8; 16]),
        hello(GUEST_WINDOW, [0; 16]),
        hello(GUEST_WINDOW + 1, BOOT_ID),
        other_build,
    ] {
        let (session, mut guest) = connect_port().await;
        let mut stream = open_started(&session, &mut guest).await;
        session.drop_link();
        let (nonce, _) = guest.hear_reset().await;
        guest.send(&[&nonce[..], &answer].concat()).await;
        assert_eq!(stream.next().await.unwrap_err(), Lost::WrongBoot);
        assert_eq!(lost(&session).await, Lost::WrongBoot);
        assert_eq!(
            session.open(&exec()).unwrap_err(),
            OpenError::Lost(Lost::WrongBoot)
        );
    }
}

#[tokio::test]
async fn something_else_than_a_hello_on_the_new_link_is_refused() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    session.drop_link();
    let (nonce, _) = guest.hear_reset().await;
    let answer = [&nonce[..], &data(stream.id, Channel::Stdout, b"x")].concat();
    guest.send(&answer).await;
    let lost = stream.next().await.unwrap_err();
    assert_eq!(lost, Lost::Violation(WireError::NotVmcell));
}

#[tokio::test]
async fn a_guest_that_is_gone_is_not_asked_for_a_new_link() {
    for while_there_is_none in [false, true] {
        let (session, mut guest) = connect_port().await;
        let mut stream = open_started(&session, &mut guest).await;
        if while_there_is_none {
            session.drop_link();
            guest.hear_reset().await;
        }
        drop(guest);
        assert_eq!(stream.next().await.unwrap_err(), Lost::Closed);
        assert_eq!(lost(&session).await, Lost::Closed);
    }
}

#[tokio::test]
async fn a_violation_is_not_forgiven_with_a_new_link() {
    let (session, mut guest) = connect_port().await;
    let mut stream = open_started(&session, &mut guest).await;
    guest.send(&started(stream.id)).await;
    let malformed = Lost::Violation(WireError::Malformed);
    assert_eq!(stream.next().await.unwrap_err(), malformed);
    assert_eq!(lost(&session).await, malformed);
}

#[tokio::test]
async fn a_connection_cannot_be_made_anew() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    session.drop_link();
    assert_eq!(stream.next().await.unwrap_err(), Lost::Dropped);
    assert_eq!(lost(&session).await, Lost::Dropped);
    while guest.hear().await.is_some() {}
}

/// This takes as long as the session is patient: 5 seconds.
#[tokio::test]
async fn a_guest_that_does_not_answer_a_reset_is_given_up() {
    use std::io::Write;
    let (silent, mut silent_guest) = connect_port().await;
    let (loud, mut loud_guest) = connect_port().await;
    let mut stream = open_started(&silent, &mut silent_guest).await;
    silent.drop_link();
    loud.drop_link();
    silent_guest.hear_reset().await;
    let (nonce, _) = loud_guest.hear_reset().await;
    // Always nearly the answer, which takes longer to look at than to send: on
    // a thread of its own, so that there is always something to skip.
    let nearly = nonce[..RESET_PART - 1].repeat(5000);
    let enough = Arc::new(AtomicBool::new(false));
    let flood = tokio::task::spawn_blocking({
        let mut link = loud_guest.link.into_std().unwrap();
        link.set_nonblocking(false).unwrap();
        let enough = enough.clone();
        move || while !enough.load(Ordering::Relaxed) && link.write(&nearly).is_ok() {}
    });
    // Ends the flood if it keeps everything else from running.
    let (over, is_over) = std::sync::mpsc::channel();
    let watchdog = std::thread::spawn({
        let enough = enough.clone();
        move || {
            let in_time = is_over.recv_timeout(Duration::from_secs(30)).is_ok();
            enough.store(true, Ordering::Relaxed);
            in_time
        }
    });
    assert_eq!(stream.next().await.unwrap_err(), Lost::Deaf);
    assert_eq!(lost(&silent).await, Lost::Deaf);
    let lost = lost(&loud).await;
    let _ = over.send(());
    assert!(watchdog.join().unwrap(), "only the watchdog ended it");
    assert_eq!(lost, Lost::Deaf);
    drop((silent, loud));
    flood.await.unwrap();
}

/// Large requests are the host's own doing.
#[tokio::test]
async fn a_guest_is_not_deaf_because_the_host_asks_much_at_once() {
    let (session, mut guest) = connect_port().await;
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
        assert_eq!(guest.hear().await, Some(Heard::Start(stream.id, ticket)));
        assert_eq!(guest.hear().await, Some(Heard::End(stream.id)));
    }
    settle(&session, &mut guest).await;
}

/// What happens to a process and its link, by chance.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// So many bytes are printed.
    Printed(Channel, usize),
    /// The caller reads what there is.
    Read,
    /// The link breaks.
    Dropped,
    /// The host is known to have taken everything.
    Settled,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let output = prop_oneof![3 => Just(Channel::Stdout), 1 => Just(Channel::Stderr)];
    let size = prop_oneof![1..100_usize, 1..20_000_usize, 1..600_000_usize];
    let happening = prop_oneof![
        6 => (output, size).prop_map(|(channel, count)| Happening::Printed(channel, count)),
        2 => Just(Happening::Read),
        3 => Just(Happening::Dropped),
        1 => Just(Happening::Settled),
    ];
    prop::collection::vec(happening, 1..25)
}

/// One output of a process, as an agent keeps it.
#[derive(Debug)]
struct Printer {
    channel: Channel,
    /// All that it will ever print.
    bytes: Vec<u8>,
    sent: usize,
    window: usize,
    read: Vec<u8>,
}

impl Printer {
    fn new(channel: Channel) -> Self {
        let count = 1_500_000;
        let mut bytes = pattern(count);
        if channel == Channel::Stderr {
            bytes.reverse();
        }
        Self {
            channel,
            bytes,
            sent: 0,
            window: WINDOW as usize,
            read: Vec::new(),
        }
    }

    /// The next bytes, as far as there is credit for them.
    fn print(&mut self, stream: StreamId, count: usize) -> Vec<u8> {
        let count = count.min(self.window).min(self.bytes.len() - self.sent);
        let bytes = &self.bytes[self.sent..self.sent + count];
        self.sent += count;
        self.window -= count;
        let mut frames = Vec::new();
        for part in bytes.chunks(MAX_PAYLOAD as usize) {
            frames.extend(data(stream, self.channel, part));
        }
        frames
    }

    fn taken_up(&mut self, position: Position) {
        let offset = usize::try_from(position.offset).unwrap();
        assert!(offset <= self.sent, "more arrived than was sent");
        self.sent = offset;
        self.window = position.window as usize;
    }
}

/// A process, its agent, and whoever reads what it prints.
struct Scene {
    session: Session,
    guest: Guest,
    stream: Stream,
    printers: [Printer; 2],
}

impl Scene {
    async fn new() -> Self {
        let (session, mut guest) = connect_port().await;
        let stream = open_started(&session, &mut guest).await;
        Self {
            session,
            guest,
            stream,
            printers: [Printer::new(Channel::Stdout), Printer::new(Channel::Stderr)],
        }
    }

    fn printer(&mut self, channel: Channel) -> &mut Printer {
        match channel {
            Channel::Stderr => &mut self.printers[1],
            _ => &mut self.printers[0],
        }
    }

    async fn happen(&mut self, happening: Happening) {
        let id = self.stream.id;
        match happening {
            Happening::Printed(channel, count) => {
                let bytes = self.printer(channel).print(id, count);
                self.guest.send(&bytes).await;
            }
            Happening::Read => self.read(),
            Happening::Settled => self.settle().await,
            Happening::Dropped => {
                self.session.drop_link();
                self.guest.relink(GUEST_WINDOW).await;
                let resume = self.guest.hear_resume(id).await;
                let [stdout, stderr] = &mut self.printers;
                stdout.taken_up(resume.stdout);
                stderr.taken_up(resume.stderr);
                let (stdout, stderr) = (resume.stdout.offset, resume.stderr.offset);
                self.guest.send(&attached(id, stdout, stderr, None)).await;
            }
        }
        for channel in [Channel::Stdout, Channel::Stderr] {
            let held = held(&self.stream, channel);
            assert!(held <= WINDOW.into(), "{held} bytes are held");
        }
    }

    fn read(&mut self) {
        for channel in [Channel::Stdout, Channel::Stderr] {
            loop {
                let event = {
                    let mut inner = self.stream.state.lock();
                    inner.take_output(&self.stream.shared, channel, usize::MAX)
                };
                match event {
                    Some(StreamEvent::Data(_, bytes)) => self.printer(channel).read.extend(bytes),
                    Some(other) => panic!("{other:?}"),
                    None => break,
                }
            }
        }
    }

    async fn settle(&mut self) {
        for heard in settle_past(&self.session, &mut self.guest).await {
            match heard {
                Heard::Credit(_, channel, bytes) => self.printer(channel).window += bytes as usize,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Prints the rest and reads everything.
    async fn finish(mut self) {
        let id = self.stream.id;
        while self.printers.iter().any(|one| one.sent < one.bytes.len()) {
            for channel in [Channel::Stdout, Channel::Stderr] {
                let bytes = self.printer(channel).print(id, usize::MAX);
                self.guest.send(&bytes).await;
            }
            self.settle().await;
            self.read();
            self.settle().await;
        }
        self.read();
        self.guest.send(&ends(id)).await;
        let [stdout, stderr] = &self.printers;
        let exit = Exit {
            stderr_bytes: stderr.bytes.len() as u64,
            ..exit(stdout.bytes.len() as u64)
        };
        self.guest.send(&close(id, &Outcome::Exited(exit))).await;
        let end = self.stream.next().await;
        assert!(
            matches!(end, Ok(StreamEvent::Closed(Closing::Exited(_)))),
            "{end:?}"
        );
        for one in &self.printers {
            assert!(one.read == one.bytes, "{:?} was changed", one.channel);
        }
    }
}

fn run(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // It is an error of the session if this takes more than a moment.
        let in_time = tokio::time::timeout(Duration::from_secs(60), future).await;
        assert!(in_time.is_ok(), "somebody waits forever");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_byte_comes_once_however_often_the_link_breaks(happenings in happenings()) {
        run(async {
            let mut scene = Scene::new().await;
            for happening in happenings {
                scene.happen(happening).await;
            }
            scene.finish().await;
        });
    }

    #[test]
    fn every_byte_of_the_input_arrives_once_however_often_the_link_breaks(
        window in 1..2000_u32,
        // How much is taken, and how much of that the agent still knows when
        // the link breaks.
        steps in prop::collection::vec((1..3000_usize, any::<prop::sample::Index>()), 1..20),
    ) {
        const COUNT: usize = 20_000;
        run(async {
            let (session, mut guest) = connect_port_with_window(window).await;
            let mut stream = open_started(&session, &mut guest).await;
            let (id, input) = (stream.id, stream.input());
            let write = tokio::spawn(async move {
                for part in pattern(COUNT).chunks(777) {
                    assert!(input.write(Bytes::copy_from_slice(part)).await);
                }
                input.end();
            });
            // What the process has, what of it the host knows.
            let (mut taken, mut credited, mut ended) = (Vec::new(), 0, false);
            let mut floor = 0;
            let mut steps = steps.into_iter();
            while !ended {
                let (count, kept) = match steps.next() {
                    Some((count, kept)) => (count, Some(kept)),
                    None => (usize::MAX, None),
                };
                let before = taken.len();
                while taken.len() - before < count && !ended {
                    match guest.hear().await {
                        Some(Heard::Data(_, bytes)) => taken.extend(bytes),
                        Some(Heard::End(_)) => ended = true,
                        other => panic!("{other:?}"),
                    }
                    assert!(taken.len() - credited <= window as usize, "no credit for it");
                    if taken.len() - credited > window as usize / 2 {
                        let grant = taken.len() - credited;
                        guest.send(&credit(id, grant as u32)).await;
                        credited = taken.len();
                    }
                }
                if let Some(kept) = kept {
                    settle_past(&session, &mut guest).await;
                    session.drop_link();
                    guest.relink(window).await;
                    guest.hear_resume(id).await;
                    let known = credited + kept.index(taken.len() - credited + 1);
                    // What it once said it has it does not lose.
                    let known = known.max(floor);
                    floor = known;
                    // Of that, the process has not read so much yet. Credit for
                    // it comes later.
                    let held = kept.index(known - credited + 1);
                    taken.truncate(known);
                    credited = known - held;
                    ended = false;
                    let stdin = at(known as u64, window - held as u32);
                    guest.send(&attached(id, 0, 0, Some(stdin))).await;
                    if held > window as usize / 2 {
                        guest.send(&credit(id, held as u32)).await;
                        credited = known;
                    }
                }
            }
            write.await.unwrap();
            assert!(taken == pattern(COUNT), "{} bytes arrived", taken.len());
            finish(&mut stream, &mut guest, 0).await;
        });
    }
}
