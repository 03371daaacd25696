//! Flow control, and streams that stall, end and are dropped.

use super::*;

#[tokio::test]
async fn a_hang_up_within_a_frame_is_an_error_behind_what_had_come() {
    let printed = [&b"begun"[..], &pattern(100_000)].concat();
    // In the first frame's header and payload, in the large payload (with more
    // and with less to come than is read past the buffer), between the frames,
    // in the last frame.
    for cut in [3, 10, 40_000, 90_000, 100_021, 100_040] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id;
        let mut sent = [
            data(id, Channel::Stdout, &printed[..5]),
            data(id, Channel::Stdout, &printed[5..]),
            ends(id),
            exited(id, printed.len() as u64),
        ]
        .concat();
        assert!(cut < sent.len());
        sent.truncate(cut);
        let sending = async {
            guest.send(&sent).await;
            drop(guest);
        };
        let ((), (bytes, end)) = tokio::join!(sending, read_to_end(&mut stream));
        assert_eq!(end.unwrap_err(), LinkError::Closed, "cut at {cut}");
        assert!(printed.starts_with(&bytes), "cut at {cut}");
        let headers = 8 * cut.div_ceil(13).min(2);
        assert!(
            bytes.len() >= cut.min(100_021).saturating_sub(headers),
            "what had come is lost: {} bytes are left of {cut}",
            bytes.len()
        );
        assert_eq!(
            session.open(&Request::Ping).unwrap_err(),
            OpenError::Link(LinkError::Closed)
        );
    }
}

#[tokio::test]
async fn a_dropped_stream_is_cancelled_and_late_data_is_ignored() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    drop(stream);
    assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
    // More than a window: credit comes as if it were read.
    let (mut sent, mut granted) = (0, 0);
    for size in [1000, 200_000] {
        let frame = data(id, Channel::Stdout, &vec![b'x'; size]);
        for _ in 0..3 * WINDOW as usize / size {
            guest.send(&frame).await;
            sent += size;
            if sent + 200_000 > (WINDOW + granted) as usize {
                granted += recv_credit(&session, &mut guest, id, Channel::Stdout).await;
            }
        }
    }
    guest.send(&started(id)).await;
    guest.send(&ends(id)).await;
    recv_credit(&session, &mut guest, id, Channel::Stdout).await;
    guest.send(&exited(id, 1)).await;
    settle(&session, &mut guest).await;
    assert!(!input.write(Bytes::from_static(b"x")).await);
    // Its close was its end.
    guest.send(&data(id, Channel::Stdout, b"x")).await;
    let mut error = session.link_error();
    let error = *error.wait_for(Option::is_some).await.unwrap();
    let expected = LinkError::Violation(WireError::BadStream(id.get()));
    assert_eq!(error, Some(expected));
}

#[tokio::test]
async fn a_stream_that_is_over_is_not_cancelled() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    guest.send(&exited(stream.id, 0)).await;
    settle(&session, &mut guest).await;
    drop(stream);
    // The next message to the guest is the ping, not a cancel.
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_stalled_reader_stalls_its_own_stream_only() {
    let (session, mut guest) = connect().await;
    let mut stalled = open(&session, &mut guest).await;
    let mut other = open(&session, &mut guest).await;
    // All that the guest may send to a reader that does not read.
    let frame = data(stalled.id, Channel::Stdout, &vec![b'x'; 65_536]);
    for _ in 0..WINDOW / 65_536 {
        guest.send(&frame).await;
    }
    let hello = data(other.id, Channel::Stdout, b"hello");
    guest.send(&hello).await;
    guest.send(&ends(other.id)).await;
    guest.send(&exited(other.id, 5)).await;
    let (bytes, end) = read_to_end(&mut other).await;
    assert_eq!(bytes, b"hello");
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );

    // No credit has come; it comes when the reader reads.
    settle(&session, &mut guest).await;
    let mut read = 0;
    while read < WINDOW as usize {
        let Ok(StreamEvent::Data(Channel::Stdout, bytes)) = stalled.next().await else {
            panic!("the data is lost");
        };
        read += bytes.len();
    }
    let mut granted = 0;
    while granted < WINDOW {
        match guest.recv().await {
            Some(FromHost::Credit(id, Channel::Stdout, bytes)) if id == stalled.id => {
                granted += bytes;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(granted, WINDOW);
}

#[tokio::test]
async fn a_flood_on_one_output_does_not_hide_the_other() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let problem = data(stream.id, Channel::Stderr, b"problem");
    guest.send(&problem).await;
    let chatter = data(stream.id, Channel::Stdout, b"chatter");
    for _ in 0..4 {
        guest.send(&chatter).await;
        settle(&session, &mut guest).await;
        if let Ok(StreamEvent::Data(Channel::Stderr, bytes)) = stream.next().await {
            assert_eq!(bytes, "problem");
            return;
        }
    }
    panic!("standard error waits for a pause of standard output");
}

#[tokio::test]
async fn input_waits_for_credit() {
    let (session, mut guest) = connect_with_window(10).await;
    let stream = open(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    let write = tokio::spawn({
        let input = input.clone();
        async move {
            let all = input.write(Bytes::from(pattern(25))).await;
            input.end();
            all
        }
    });
    let part = |range: std::ops::Range<usize>| FromHost::Data(id, pattern(25)[range].to_vec());
    assert_eq!(guest.recv().await, Some(part(0..10)));
    // The next message to the guest is the ping, not data.
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    guest.send(&credit(id, 9)).await;
    assert_eq!(guest.recv().await, Some(part(10..19)));
    settle(&session, &mut guest).await;
    assert!(!write.is_finished());
    guest.send(&credit(id, 1000)).await;
    assert_eq!(guest.recv().await, Some(part(19..25)));
    assert_eq!(guest.recv().await, Some(FromHost::End(id)));
    assert!(write.await.unwrap(), "everything was written");
    assert!(!input.write(Bytes::from_static(b"x")).await, "it has ended");
}

#[tokio::test]
async fn input_that_waits_is_told_when_nobody_reads_it_any_more() {
    // The process ends, or the guest does.
    for process_only in [true, false] {
        let (session, mut guest) = connect_with_window(0).await;
        let stream = open(&session, &mut guest).await;
        let input = stream.input();
        let write = tokio::spawn(async move { input.write(Bytes::from_static(b"x")).await });
        settle(&session, &mut guest).await;
        assert!(!write.is_finished());
        if process_only {
            guest.send(&exited(stream.id, 0)).await;
        } else {
            drop(guest);
        }
        assert!(!write.await.unwrap());
    }
}

/// The host must not queue input without limit for a guest that grants credit and
/// does not read.
#[tokio::test]
async fn a_guest_that_grants_credit_and_does_not_read_stops_the_input() {
    const CHUNK: &[u8] = &[0; 256 * 1024];
    const GRANTS: usize = 200;
    let (session, mut guest) = connect_with_window(0).await;
    let stream = open(&session, &mut guest).await;
    let input = stream.input();
    let write = tokio::spawn(async move {
        let mut written = 0;
        while input.write(Bytes::from_static(CHUNK)).await {
            written += CHUNK.len();
        }
        written
    });
    // The guest answers them, and never reads them.
    let pings = (0..GRANTS).map(|_| session.open(&Request::Ping).unwrap());
    for mut ping in pings.collect::<Vec<_>>() {
        let grant = credit(stream.id, CHUNK.len() as u32);
        guest.send(&grant).await;
        guest.send(&close(ping.id, &Outcome::Pong)).await;
        // More credit than may be outstanding is the end of the link.
        if ping.next().await.is_err() {
            break;
        }
    }
    drop(session);
    let written = write.await.unwrap();
    assert!(
        written <= MAX_WINDOW as usize,
        "{written} bytes wait for a guest that does not read"
    );
}

/// A program with one thread must continue to run, if only to end the VM.
#[tokio::test]
async fn a_guest_that_never_pauses_does_not_stop_a_runtime_of_one_thread() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let flood = Flood::start(guest.link, ends(stream.id).repeat(8192)).await;
    flood.stop();
    drop((stream, session));
    assert!(
        flood.was_interrupted().await,
        "nothing else ran before the guest was finished"
    );
}

#[tokio::test]
async fn more_streams_than_a_link_can_have_are_refused_until_one_is_closed() {
    let (session, mut guest) = connect().await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        streams.push(open(&session, &mut guest).await);
    }
    assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Full);
    // A cancelled stream keeps its place until the guest has closed it.
    let cancelled = streams.pop().unwrap();
    let id = cancelled.id;
    drop(cancelled);
    assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
    assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Full);

    guest.send(&exited(streams[0].id, 0)).await;
    let (_, end) = read_to_end(&mut streams[0]).await;
    assert!(end.is_ok(), "{end:?}");
    open(&session, &mut guest).await;
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_refused_and_takes_no_place() {
    let (session, mut guest) = connect().await;
    let cwd = vec![b'x'; MAX_PAYLOAD as usize];
    for _ in 0..=MAX_STREAMS {
        let request = Request::Start(Start {
            cwd: &cwd,
            ..start(TICKET)
        });
        assert_eq!(session.open(&request).unwrap_err(), OpenError::TooLarge);
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_failure_is_told_in_words_that_are_safe_to_print() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let failure = Failure::new(FailureKind::NotFound, Stage::Exec, "\x1b[2Jnothing\r");
    let failed = close(stream.id, &Outcome::Failed(failure));
    guest.send(&failed).await;
    let (_, end) = read_to_end(&mut stream).await;
    let Ok(Outcome::Failed(failure)) = end.as_ref().map(Closing::outcome) else {
        panic!("{end:?}");
    };
    let failure = crate::process::ExecFailure::from_wire(&failure, "sh".to_owned());
    assert!(!failure.text.chars().any(char::is_control), "{failure:?}");
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_dropped_session_hangs_up_and_fails_its_streams() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    drop(session);
    let (_, end) = read_to_end(&mut stream).await;
    assert_eq!(end.unwrap_err(), LinkError::Closed);
    while guest.recv().await.is_some() {}
}
