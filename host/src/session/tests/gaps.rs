//! Gaps: bytes that a guest has dropped.

use super::*;

/// Data or a gap of an output.
#[derive(Debug, PartialEq, Eq)]
enum Chunk {
    Data(Channel, Vec<u8>),
    Gap(Channel, u64),
}

async fn next(stream: &mut Stream) -> Chunk {
    match stream.next().await {
        Ok(StreamEvent::Data(channel, bytes)) => Chunk::Data(channel, bytes.to_vec()),
        Ok(StreamEvent::Gap(channel, bytes)) => Chunk::Gap(channel, bytes),
        other => panic!("{other:?}"),
    }
}

fn printed(bytes: &[u8]) -> Chunk {
    Chunk::Data(Channel::Stdout, bytes.to_vec())
}

fn dropped(bytes: u64) -> Chunk {
    Chunk::Gap(Channel::Stdout, bytes)
}

/// Lets a guest send bytes to a stream that watches a process.
async fn error_attached(bytes: impl FnOnce(StreamId) -> Vec<u8>) -> LinkError {
    let (session, mut guest) = connect().await;
    let mut stream = watch(&session, &mut guest).await;
    guest.send(&bytes(stream.id)).await;
    let (_, end) = read_to_end(&mut stream).await;
    end.expect_err("the guest broke the protocol")
}

const MALFORMED: LinkError = LinkError::Violation(WireError::Malformed);

/// Secrets are masked between gaps, whether they were granted before the bytes arrived or
/// before they were read, and never across a gap.
#[tokio::test]
async fn secrets_are_masked_between_gaps() {
    for granted_first in [true, false] {
        let (session, mut guest) = connect().await;
        let mut stream = watch(&session, &mut guest).await;
        let id = stream.id;
        let grant = || {
            let value = zeroize::Zeroizing::new(b"hunter2-hunter2".to_vec());
            session.shared.secrets.grant([value]).unwrap();
        };
        if granted_first {
            grant();
        }
        let sent = [
            data(id, Channel::Stdout, b"one hunter2-"),
            data(id, Channel::Stdout, b"hunter2, hunt"),
            gap(id, Output::Stdout, 3),
            data(id, Channel::Stdout, b"er2-hunter2 hunter2-hunter2 hunt"),
            gap(id, Output::Stdout, 5),
            data(id, Channel::Stdout, b"er2-hunter2."),
        ];
        guest.send(&sent.concat()).await;
        settle(&session, &mut guest).await;
        if !granted_first {
            grant();
        }
        let expected = [
            printed(b"one ***************, hunt"),
            dropped(3),
            printed(b"er2-hunter2 *************** hunt"),
            dropped(5),
            printed(b"er2-hunter2."),
        ];
        for chunk in expected {
            assert_eq!(next(&mut stream).await, chunk, "{granted_first}");
        }
    }
}

#[tokio::test]
async fn gaps_are_told_where_they_are_between_the_bytes() {
    let (session, mut guest) = connect().await;
    let mut stream = watch(&session, &mut guest).await;
    let id = stream.id;
    let sent = [
        gap(id, Output::Stdout, 7),
        data(id, Channel::Stdout, b"one"),
        data(id, Channel::Stdout, b"two"),
        gap(id, Output::Stdout, u64::from(u32::MAX) + 1),
        data(id, Channel::Stdout, b"three"),
        gap(id, Output::Stdout, 1),
    ];
    guest.send(&sent.concat()).await;
    settle(&session, &mut guest).await;
    assert_eq!(stream.offset(Channel::Stdout), 0);
    assert_eq!(next(&mut stream).await, dropped(7));
    assert_eq!(stream.offset(Channel::Stdout), 7);
    assert_eq!(next(&mut stream).await, printed(b"onetwo"));
    assert_eq!(stream.offset(Channel::Stdout), 13);
    assert_eq!(next(&mut stream).await, dropped(u64::from(u32::MAX) + 1));
    assert_eq!(next(&mut stream).await, printed(b"three"));
    assert_eq!(next(&mut stream).await, dropped(1));
    assert_eq!(stream.offset(Channel::Stdout), 13 + (1 << 32) + 5 + 1);
}

#[tokio::test]
async fn a_gap_on_one_output_is_none_on_the_other() {
    let (session, mut guest) = connect().await;
    let stream = watch(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&gap(id, Output::Stderr, 7)).await;
    guest.send(&data(id, Channel::Stdout, b"one")).await;
    guest.send(&data(id, Channel::Stderr, b"two")).await;
    settle(&session, &mut guest).await;
    let (mut stdout, mut stderr) = (
        stream.output(Channel::Stdout),
        stream.output(Channel::Stderr),
    );
    assert_eq!(
        outputs::read(&mut stdout).await,
        outputs::Read::Data("one".into())
    );
    assert_eq!(outputs::read(&mut stderr).await, outputs::Read::Gap(7));
    assert_eq!(
        outputs::read(&mut stderr).await,
        outputs::Read::Data("two".into())
    );
}

#[tokio::test]
async fn gaps_without_bytes_between_them_are_one() {
    let (session, mut guest) = connect().await;
    let mut stream = watch(&session, &mut guest).await;
    let id = stream.id;
    // More of them than there may be apart.
    for _ in 0..2 * MAX_GAPS {
        guest.send(&gap(id, Output::Stdout, 3)).await;
    }
    guest.send(&data(id, Channel::Stdout, b"x")).await;
    settle(&session, &mut guest).await;
    assert_eq!(next(&mut stream).await, dropped(6 * MAX_GAPS as u64));
    assert_eq!(next(&mut stream).await, printed(b"x"));
    // A gap that was reported is not added to the next.
    guest.send(&gap(id, Output::Stdout, 5)).await;
    assert_eq!(next(&mut stream).await, dropped(5));
    guest.send(&gap(id, Output::Stdout, 6)).await;
    assert_eq!(next(&mut stream).await, dropped(6));
}

/// Gaps, each one after a byte.
fn gaps_and_bytes(stream: StreamId, count: usize) -> Vec<u8> {
    [
        data(stream, Channel::Stdout, b"x"),
        gap(stream, Output::Stdout, 1),
    ]
    .concat()
    .repeat(count)
}

#[tokio::test]
async fn more_gaps_than_may_wait_are_refused() {
    let error = error_attached(|stream| gaps_and_bytes(stream, MAX_GAPS + 1)).await;
    assert_eq!(error, MALFORMED);
}

#[tokio::test]
async fn any_number_of_gaps_may_come_to_a_reader_that_reads() {
    let (session, mut guest) = connect().await;
    let mut stream = watch(&session, &mut guest).await;
    for _ in 0..3 {
        guest.send(&gaps_and_bytes(stream.id, MAX_GAPS)).await;
        settle(&session, &mut guest).await;
        for _ in 0..MAX_GAPS {
            assert_eq!(next(&mut stream).await, printed(b"x"));
            assert_eq!(next(&mut stream).await, dropped(1));
        }
    }
}

#[tokio::test]
async fn gaps_that_nobody_reads_are_not_held() {
    let (session, mut guest) = connect().await;
    let stream = watch(&session, &mut guest).await;
    drop(stream.output(Channel::Stdout));
    guest.send(&gaps_and_bytes(stream.id, 3 * MAX_GAPS)).await;
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn an_offset_that_overflows_is_refused() {
    for rest in [
        |stream| gap(stream, Output::Stdout, u64::MAX),
        |stream| {
            [
                gap(stream, Output::Stdout, u64::MAX - 1),
                gap(stream, Output::Stdout, 1),
            ]
            .concat()
        },
        |stream| {
            [
                gap(stream, Output::Stdout, u64::MAX - 2),
                data(stream, Channel::Stdout, b"xx"),
            ]
            .concat()
        },
        // So much that it is read directly into its stream.
        |stream| {
            [
                gap(stream, Output::Stdout, u64::MAX - 10),
                data(stream, Channel::Stdout, &[0; 200_000]),
            ]
            .concat()
        },
    ] {
        let error =
            error_attached(|stream| [data(stream, Channel::Stdout, b"x"), rest(stream)].concat())
                .await;
        assert_eq!(error, MALFORMED);
    }
}

#[tokio::test]
async fn gaps_that_make_no_sense_are_refused() {
    for bytes in [
        // Of nothing.
        |stream| gap(stream, Output::Stdout, 0),
        // Behind the end.
        |stream| [ends(stream), gap(stream, Output::Stderr, 1)].concat(),
    ] {
        assert_eq!(error_attached(bytes).await, MALFORMED);
        assert_eq!(error_after(bytes).await, MALFORMED);
    }
}

#[tokio::test]
async fn a_gap_on_an_output_that_was_not_asked_for_is_refused() {
    let (session, mut guest) = connect().await;
    let request = Request::Attach(Attach {
        stderr: None,
        ..attach(Selector::Pid(PID), false)
    });
    let mut stream = session.open(&request).unwrap();
    guest.send(&attached(stream.id, 0, 0, None)).await;
    guest.send(&gap(stream.id, Output::Stderr, 1)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert_eq!(end.unwrap_err(), MALFORMED);

    let (session, mut guest) = connect().await;
    let mut ping = session.open(&Request::Ping).unwrap();
    guest.send(&gap(ping.id, Output::Stdout, 1)).await;
    assert_eq!(ping.next().await.unwrap_err(), MALFORMED);
}

#[tokio::test]
async fn what_an_exit_counts_includes_the_gaps() {
    for (claimed, right) in [(5, false), (14, false), (15, true), (16, false)] {
        let (session, mut guest) = connect().await;
        let mut stream = watch(&session, &mut guest).await;
        let id = stream.id;
        let sent = [
            data(id, Channel::Stdout, b"he"),
            gap(id, Output::Stdout, 10),
            data(id, Channel::Stdout, b"llo"),
            ends(id),
            exited(id, claimed),
        ];
        guest.send(&sent.concat()).await;
        let (bytes, end) = read_to_end(&mut stream).await;
        assert_eq!(bytes, b"hello");
        assert_eq!(end.is_ok(), right, "{claimed} bytes were claimed: {end:?}");
    }
}

/// Its bytes are not sent, so they use none of the window.
#[tokio::test]
async fn a_gap_needs_no_credit() {
    let (session, mut guest) = connect().await;
    let mut stream = watch(&session, &mut guest).await;
    let id = stream.id;
    let bytes = pattern(WINDOW as usize);
    for part in bytes.chunks(200_000) {
        guest.send(&gap(id, Output::Stdout, 1_000_000)).await;
        guest.send(&data(id, Channel::Stdout, part)).await;
    }
    guest.send(&gap(id, Output::Stdout, 1_000_000)).await;
    settle(&session, &mut guest).await;
    let (mut read, mut dropped) = (Vec::new(), 0);
    while dropped < 7_000_000 {
        match next(&mut stream).await {
            Chunk::Data(_, more) => read.extend(more),
            Chunk::Gap(_, more) => dropped += more,
        }
    }
    assert!(read == bytes, "{} bytes arrived", read.len());
    // Three pieces are more than half a window. The rest is granted later.
    let granted = recv_credit(&session, &mut guest, id, Channel::Stdout).await;
    assert_eq!(granted, 600_000);
}

#[tokio::test]
async fn a_new_link_goes_on_behind_a_gap_that_was_told() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = watch(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"one")).await;
    guest.send(&gap(id, Output::Stdout, 1000)).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    let expected = Attach {
        stdout: Some(Position {
            offset: 1003,
            window: WINDOW - 3,
        }),
        ..attach(Selector::Id(ID), false)
    };
    assert_eq!(guest.recv().await, Some(FromHost::Attach(id, expected)));
    guest.send(&attached(id, 1003, 0, None)).await;
    guest.send(&gap(id, Output::Stdout, 10)).await;
    guest.send(&data(id, Channel::Stdout, b"two")).await;
    settle(&session, &mut guest).await;
    assert_eq!(next(&mut stream).await, printed(b"one"));
    assert_eq!(next(&mut stream).await, dropped(1010));
    assert_eq!(next(&mut stream).await, printed(b"two"));
}
