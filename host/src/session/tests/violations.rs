//! Guests that violate the protocol.

use super::*;

#[tokio::test]
async fn an_impossible_length_is_refused_by_its_header_alone() {
    for (kind, length) in [
        (Kind::Data(Channel::Stdout), MAX_PAYLOAD + 1),
        (Kind::Data(Channel::Stdout), u32::MAX),
        (Kind::Data(Channel::Stdout), 0),
        (Kind::Close, MAX_PAYLOAD + 1),
        (Kind::Event, u32::MAX),
        (Kind::End(Channel::Stdout), 1),
        (Kind::Credit(Channel::Stdin), 3),
    ] {
        let error = error_after(|stream| {
            let header = Header {
                length,
                stream: Some(stream),
                kind,
            };
            header.to_bytes().to_vec()
        })
        .await;
        let LinkError::Violation(WireError::BadLength { length: found, .. }) = error else {
            panic!("{kind:?} of {length} bytes: {error:?}");
        };
        assert_eq!(found, length);
    }
}

#[tokio::test]
async fn what_only_a_host_may_send_is_refused() {
    for (kind, payload) in [
        (Kind::Open, &b"\0"[..]),
        (Kind::Cancel, b""),
        (Kind::Ack, b""),
        (Kind::Data(Channel::Stdin), b"x"),
        (Kind::End(Channel::Stdin), b""),
        (Kind::Credit(Channel::Stdout), &[1, 0, 0, 0]),
        (Kind::Credit(Channel::Stderr), &[1, 0, 0, 0]),
    ] {
        let error = error_after(|stream| frame(kind, Some(stream), payload)).await;
        assert!(
            matches!(error, LinkError::Violation(WireError::UnexpectedKind(_))),
            "{kind:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_second_hello_is_refused() {
    let error = error_after(|_| hello(GUEST_WINDOW, BOOT_ID)).await;
    assert_eq!(error, LinkError::Violation(WireError::Malformed));
}

#[tokio::test]
async fn messages_that_make_no_sense_are_refused() {
    for (kind, payload) in [
        (Kind::Event, &[0xff; 5][..]),
        (Kind::Close, &[0xff; 5]),
        // A pong with something behind it.
        (Kind::Close, &[1, 0]),
        // Credit for nothing.
        (Kind::Credit(Channel::Stdin), &[0; 4]),
    ] {
        let error = error_after(|stream| frame(kind, Some(stream), payload)).await;
        assert_eq!(error, MALFORMED, "{kind:?}");
    }
}

#[tokio::test]
async fn nothing_may_come_on_a_stream_that_was_never_opened() {
    let unopened = StreamId::new(4711).unwrap();
    for bytes in [
        data(unopened, Channel::Stdout, b"x"),
        // So large that it would be read directly into its stream.
        data(unopened, Channel::Stdout, &[0; 100_000]),
        started(unopened),
        ends(unopened),
        credit(unopened, 1),
        close(unopened, &Outcome::Pong),
    ] {
        let error = error_after(|_| bytes).await;
        assert_eq!(error, LinkError::Violation(WireError::BadStream(4711)));
    }
}

#[tokio::test]
async fn data_past_the_window_is_refused_and_not_held() {
    // Small frames go through the reader's buffer, large ones past it.
    for size in [1000, MAX_PAYLOAD as usize] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let mut error = session.link_error();
        let frame = data(stream.id, Channel::Stdout, &vec![b'x'; size]);
        let mut sent = 0;
        let error = loop {
            tokio::select! {
                biased;
                error = error.wait_for(Option::is_some) => break *error.unwrap(),
                () = guest.send(&frame) => sent += frame.len(),
            }
        };
        let overrun = LinkError::Violation(WireError::Overrun(Channel::Stdout));
        assert_eq!(error, Some(overrun));
        // The rest is in the buffers of the sockets.
        assert!(sent < 4 * WINDOW as usize, "{sent} bytes were taken");
        // What it was allowed to send is there, and no byte more.
        let (held, end) = read_to_end(&mut stream).await;
        assert_eq!(end.unwrap_err(), overrun);
        assert_eq!(held.len(), WINDOW as usize);
    }
}

#[tokio::test]
async fn each_byte_in_a_frame_of_its_own_arrives_and_costs_no_more_than_a_byte() {
    const COUNT: usize = 512 * 1024;
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let bytes = pattern(COUNT);
    for part in bytes.chunks(4096) {
        let frames: Vec<u8> = part
            .iter()
            .flat_map(|byte| data(stream.id, Channel::Stdout, &[*byte]))
            .collect();
        guest.send(&frames).await;
    }
    settle(&session, &mut guest).await;
    // A list of pieces would take 32 MiB and more.
    let room = stream.state.lock().stdout.memory_used();
    assert!(room <= 2 * COUNT, "the host holds {room} bytes");
    guest.send(&ends(stream.id)).await;
    guest.send(&exited(stream.id, COUNT as u64)).await;
    let (held, end) = read_to_end(&mut stream).await;
    assert!(held == bytes, "{} bytes arrived", held.len());
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
}

#[tokio::test]
async fn large_frames_arrive_unchanged_however_they_are_cut() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let bytes = pattern(700_000);
    let id = stream.id;
    let sending = async {
        let mut sent = Vec::new();
        for part in bytes.chunks(200_001) {
            sent.extend(data(id, Channel::Stdout, part));
        }
        sent.extend(ends(id));
        sent.extend(exited(id, bytes.len() as u64));
        for part in sent.chunks(77_777) {
            guest.send(part).await;
            tokio::task::yield_now().await;
        }
    };
    let ((), (received, end)) = tokio::join!(sending, read_to_end(&mut stream));
    assert!(received == bytes, "{} bytes arrived", received.len());
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
}

#[tokio::test]
async fn a_process_starts_once() {
    let error = error_after(|stream| [started(stream), started(stream)].concat()).await;
    assert_eq!(error, LinkError::Violation(WireError::Malformed));
}

#[tokio::test]
async fn nothing_may_come_on_an_output_that_has_ended() {
    for payload in [&b"x"[..], &[0; 100_000]] {
        let error =
            error_after(|stream| [ends(stream), data(stream, Channel::Stderr, payload)].concat())
                .await;
        assert_eq!(error, LinkError::Violation(WireError::Malformed));
    }
}

/// Large frames are read directly to where users take them from.
#[tokio::test]
async fn what_comes_on_an_output_that_has_ended_is_not_handed_out() {
    for size in [1, 1000, 100_000] {
        for after_header in [1, size / 2, size - 1, size] {
            let (session, mut guest) = connect().await;
            let mut stream = open(&session, &mut guest).await;
            let id = stream.id;
            guest.send(&data(id, Channel::Stdout, b"printed")).await;
            guest.send(&ends(id)).await;
            let frame = data(id, Channel::Stdout, &vec![b'x'; size]);
            let (begin, rest) = frame.split_at(frame.len() - after_header);
            guest.send(begin).await;
            // Lets the host read so far.
            tokio::task::yield_now().await;
            guest.send(rest).await;
            let (held, end) = read_to_end(&mut stream).await;
            assert_eq!(end.unwrap_err(), MALFORMED);
            assert_eq!(held, b"printed");
        }
    }
}

#[tokio::test]
async fn nothing_may_come_on_a_stream_that_is_closed() {
    for more in [
        |stream: StreamId| close(stream, &Outcome::Pong),
        |stream: StreamId| data(stream, Channel::Stdout, b"x"),
        |stream: StreamId| credit(stream, 1),
    ] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&ends(id)).await;
        guest.send(&exited(id, 0)).await;
        guest.send(&more(id)).await;
        let mut error = session.link_error();
        let error = *error.wait_for(Option::is_some).await.unwrap();
        let expected = LinkError::Violation(WireError::BadStream(id.get()));
        assert_eq!(error, Some(expected));
        // What came before that was in order.
        let (_, end) = read_to_end(&mut stream).await;
        assert!(
            matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn too_much_credit_is_refused() {
    let overflow = LinkError::Violation(WireError::CreditOverflow(Channel::Stdin));
    assert_eq!(
        error_after(|stream| credit(stream, u32::MAX)).await,
        overflow
    );
    let little_by_little = |stream| {
        let grants = MAX_WINDOW / GUEST_WINDOW;
        (0..grants)
            .flat_map(|_| credit(stream, GUEST_WINDOW))
            .collect()
    };
    assert_eq!(error_after(little_by_little).await, overflow);
}

#[tokio::test]
async fn an_exit_that_counts_other_bytes_than_came_is_an_error() {
    for claimed in [0, 4, 6, u64::MAX] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        guest.send(&ends(id)).await;
        guest.send(&exited(id, claimed)).await;
        let (bytes, end) = read_to_end(&mut stream).await;
        assert_eq!(bytes, b"hello");
        assert!(end.is_err(), "{claimed} bytes were claimed: {end:?}");
    }
}

/// Only a stream that the host itself cancelled may be without the ends of its
/// outputs.
#[tokio::test]
async fn an_exit_without_the_ends_of_the_outputs_is_no_short_success() {
    for claimed in [6, u64::MAX] {
        let (session, mut guest) = connect().await;
        let mut stream = open(&session, &mut guest).await;
        let id = stream.id;
        guest.send(&data(id, Channel::Stdout, b"hello")).await;
        guest.send(&exited(id, claimed)).await;
        let (_, end) = read_to_end(&mut stream).await;
        assert!(end.is_err(), "{claimed} bytes were claimed: {end:?}");
    }
}

#[tokio::test]
async fn a_cancelled_process_may_have_printed_more_than_came() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    stream.cancel();
    assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
    guest.send(&data(id, Channel::Stdout, b"hello")).await;
    guest.send(&exited(id, 1_000_000)).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"hello");
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
}

#[tokio::test]
async fn only_who_asked_to_watch_is_told_where_a_process_stands() {
    let error = error_after(|stream| attached(stream, 0, 0, None)).await;
    assert_eq!(error, MALFORMED);
    let answer = |stream| [started(stream), attached(stream, 0, 0, None)].concat();
    assert_eq!(error_after(answer).await, MALFORMED);
}

/// Opens a stream with a request and lets a guest answer it.
async fn error_for(request: Request<'_>, bytes: impl FnOnce(StreamId) -> Vec<u8>) -> LinkError {
    let (session, mut guest) = connect().await;
    let mut stream = session.open(&request).unwrap();
    guest.send(&bytes(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    let error = end.expect_err("the guest broke the protocol");
    assert_eq!(*session.link_error().borrow(), Some(error));
    error
}

const MALFORMED: LinkError = LinkError::Violation(WireError::Malformed);

#[tokio::test]
async fn a_process_is_attached_to_once() {
    let request = Request::Attach(attach(Selector::Id(ID), false));
    let twice = |stream| attached(stream, 0, 0, None).repeat(2);
    assert_eq!(error_for(request, twice).await, MALFORMED);
}

#[tokio::test]
async fn a_process_that_is_attached_to_does_not_start() {
    let request = Request::Attach(attach(Selector::Id(ID), false));
    assert_eq!(error_for(request, started).await, MALFORMED);
}

#[tokio::test]
async fn nothing_may_come_on_a_channel_that_was_not_asked_for() {
    let outputs = [Channel::Stdout, Channel::Stderr];
    for (requested, other) in [(outputs[0], outputs[1]), (outputs[1], outputs[0])] {
        let all = attach(Selector::Id(ID), false);
        let request = Request::Attach(Attach {
            stdout: all.stdout.filter(|_| requested == Channel::Stdout),
            stderr: all.stderr.filter(|_| requested == Channel::Stderr),
            ..all
        });
        // Small, so large that it would be read directly into its stream, none.
        for bytes in [
            |stream, channel| data(stream, channel, b"x"),
            |stream, channel| data(stream, channel, &[0; 100_000]),
            |stream, channel| frames(|out| encode::end(out, stream, channel)),
        ] {
            let error = error_for(request, |stream| {
                [
                    attached(stream, 0, 0, None),
                    bytes(stream, requested),
                    bytes(stream, other),
                ]
                .concat()
            })
            .await;
            assert_eq!(error, MALFORMED);
        }
    }
    for request in [Request::Ping, Request::List { after: 0 }] {
        for channel in outputs {
            let bytes = |stream| data(stream, channel, &[0; 100_000]);
            assert_eq!(error_for(request, bytes).await, MALFORMED);
        }
    }
}

#[tokio::test]
async fn processes_come_to_those_who_asked_for_a_list() {
    assert_eq!(error_after(|stream| listed(stream, 1)).await, MALFORMED);
    let error = error_for(Request::Ping, |stream| listed(stream, 1)).await;
    assert_eq!(error, MALFORMED);
}

#[tokio::test]
async fn a_list_has_an_end() {
    let too_many = |stream| {
        let processes = 1..=MAX_LISTED as u32 + 1;
        processes
            .flat_map(|process| listed(stream, process))
            .collect()
    };
    let request = Request::List { after: 0 };
    assert_eq!(error_for(request, too_many).await, MALFORMED);

    // Also for a reader that takes each one before the next comes.
    let (session, mut guest) = connect().await;
    let mut stream = session.open(&request).unwrap();
    for process in 1..=MAX_LISTED as u32 {
        guest.send(&listed(stream.id, process)).await;
        let event = stream.next().await;
        assert!(matches!(event, Ok(StreamEvent::Listed(_))), "{event:?}");
    }
    guest.send(&listed(stream.id, 1000)).await;
    assert_eq!(stream.next().await.unwrap_err(), MALFORMED);
}

#[tokio::test]
async fn an_absurd_place_to_begin_at_is_refused() {
    let request = Request::Attach(attach(Selector::Id(ID), true));
    for (offset, window) in [(0, MAX_WINDOW + 1), (0, u32::MAX)] {
        let stdin = Position { offset, window };
        let bytes = |stream| attached(stream, 0, 0, Some(stdin));
        let error = error_for(request, bytes).await;
        assert!(
            matches!(error, LinkError::Violation(_)),
            "{stdin:?}: {error:?}"
        );
    }
    // There is nothing behind the last offset.
    let bytes = |stream| {
        [
            attached(stream, u64::MAX - 1, 0, None),
            data(stream, Channel::Stdout, b"xx"),
        ]
        .concat()
    };
    assert_eq!(error_for(request, bytes).await, MALFORMED);
}

#[tokio::test]
async fn an_input_that_stands_at_the_last_offset_harms_nobody() {
    let (session, mut guest) = connect().await;
    let request = Request::Attach(attach(Selector::Id(ID), true));
    let stream = session.open(&request).unwrap();
    let id = stream.id;
    let stdin = Position {
        offset: u64::MAX,
        window: 100,
    };
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    // Whether or not this is a violation, it must not panic the task.
    let input = stream.input();
    if input.write(Bytes::from_static(b"input")).await {
        guest.send(&credit(id, 5)).await;
        drop(guest);
    }
    let mut error = session.link_error();
    assert!(error.wait_for(Option::is_some).await.unwrap().is_some());
}
