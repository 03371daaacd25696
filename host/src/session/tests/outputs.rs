//! Outputs that are read separately from their stream.

use std::future::poll_fn;

use super::*;

/// What a reader of one output gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Data(Bytes),
    Gap(u64),
    End,
    Link(LinkError),
}

pub(super) async fn read(output: &mut StreamOutput) -> Read {
    read_at_most(output, usize::MAX).await
}

async fn read_at_most(output: &mut StreamOutput, max: usize) -> Read {
    match poll_fn(|context| output.poll_next(context, max)).await {
        Some(Ok(StreamEvent::Data(_, bytes))) => Read::Data(bytes),
        Some(Ok(StreamEvent::Gap(_, bytes))) => Read::Gap(bytes),
        Some(Ok(other)) => panic!("an output does not tell {other:?}"),
        Some(Err(error)) => Read::Link(error),
        None => Read::End,
    }
}

/// All bytes of an output, and how it ended.
pub(super) async fn read_all(output: &mut StreamOutput) -> (Vec<u8>, Read) {
    let mut bytes = Vec::new();
    loop {
        match read(output).await {
            Read::Data(more) => bytes.extend(more),
            other => return (bytes, other),
        }
    }
}

/// The close of a process that printed this many bytes on both outputs.
fn exited_with_both(stream: StreamId, stdout_bytes: u64, stderr_bytes: u64) -> Vec<u8> {
    let exit = Exit {
        stderr_bytes,
        ..exit(stdout_bytes)
    };
    close(stream, &Outcome::Exited(exit))
}

#[tokio::test]
async fn outputs_can_be_read_apart_and_the_rest_comes_to_the_stream() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    let mut stdout = stream.output(Channel::Stdout);
    let mut stderr = stream.output(Channel::Stderr);
    let readers = tokio::spawn(async move {
        let both = tokio::join!(read_all(&mut stdout), read_all(&mut stderr));
        assert!(stdout.has_ended() && stderr.has_ended());
        both
    });
    let sent = [
        started(id),
        data(id, Channel::Stdout, b"out"),
        data(id, Channel::Stderr, b"err"),
        data(id, Channel::Stdout, b"put"),
        ends(id),
    ];
    guest.send(&sent.concat()).await;
    let event = stream.next_except_output().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
    let (stdout, stderr) = readers.await.unwrap();
    assert_eq!(stdout, (b"output".to_vec(), Read::End));
    assert_eq!(stderr, (b"err".to_vec(), Read::End));
    guest.send(&exited_with_both(id, 6, 3)).await;
    let event = stream.next_except_output().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::Exited(_))),
        "{event:?}"
    );
}

#[tokio::test]
async fn no_more_is_taken_from_an_output_than_was_wanted() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let mut stdout = stream.output(Channel::Stdout);
    guest
        .send(&data(stream.id, Channel::Stdout, b"abcde"))
        .await;
    settle(&session, &mut guest).await;
    assert_eq!(read_at_most(&mut stdout, 2).await, Read::Data("ab".into()));
    assert_eq!(stream.offset(Channel::Stdout), 2);
    assert_eq!(read_at_most(&mut stdout, 2).await, Read::Data("cd".into()));
    // A read of zero bytes waits, and loses nothing.
    tokio::select! {
        biased;
        read = read_at_most(&mut stdout, 0) => panic!("{read:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(read_at_most(&mut stdout, 2).await, Read::Data("e".into()));
}

#[tokio::test]
async fn a_dropped_output_keeps_its_credit_flowing_and_the_other_its_bytes() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    let mut stderr = stream.output(Channel::Stderr);
    let stdout = stream.output(Channel::Stdout);
    // A full window, which is unread when the output is dropped.
    let chunk = vec![b'x'; 65_536];
    let frame = data(id, Channel::Stdout, &chunk);
    guest.send(&data(id, Channel::Stderr, b"kept")).await;
    guest.send(&frame.repeat((WINDOW / 65_536) as usize)).await;
    settle(&session, &mut guest).await;
    drop(stdout);
    let mut available = recv_credit(&session, &mut guest, id, Channel::Stdout).await;
    assert_eq!(available, WINDOW);
    let mut sent = u64::from(WINDOW);
    while sent < 5 * u64::from(WINDOW) {
        while available >= 65_536 {
            guest.send(&frame).await;
            available -= 65_536;
            sent += 65_536;
        }
        let granted = recv_credit(&session, &mut guest, id, Channel::Stdout).await;
        assert!(granted > 0, "after {sent} bytes");
        available += granted;
    }
    guest.send(&ends(id)).await;
    guest.send(&exited_with_both(id, sent, 4)).await;
    let event = stream.next_except_output().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::Exited(_))),
        "{event:?}"
    );
    assert_eq!(read_all(&mut stderr).await, (b"kept".to_vec(), Read::End));
}

#[tokio::test]
async fn what_came_can_be_read_after_the_stream_is_closed_and_dropped() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    let mut stdout = stream.output(Channel::Stdout);
    let mut stderr = stream.output(Channel::Stderr);
    let bytes = pattern(300_000);
    for part in bytes.chunks(100_000) {
        guest.send(&data(id, Channel::Stdout, part)).await;
    }
    guest.send(&ends(id)).await;
    guest.send(&exited(id, 300_000)).await;
    let event = stream.next_except_output().await;
    assert!(
        matches!(outcome_of(&event), Some(Outcome::Exited(_))),
        "{event:?}"
    );
    drop(stream);
    // The session may go as well.
    drop((session, guest));
    let (read, end) = read_all(&mut stdout).await;
    assert!(read == bytes, "{} bytes are left", read.len());
    assert_eq!(end, Read::End);
    assert_eq!(read_all(&mut stderr).await, (Vec::new(), Read::End));
}

#[tokio::test]
async fn an_output_of_a_stream_that_was_dropped_before_its_end_is_over() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let id = stream.id;
    let mut stdout = stream.output(Channel::Stdout);
    guest.send(&data(id, Channel::Stdout, b"unread")).await;
    settle(&session, &mut guest).await;
    drop(stream);
    assert_eq!(guest.recv().await, Some(FromHost::Cancel(id)));
    let reader = tokio::spawn(async move { read_all(&mut stdout).await });
    guest.send(&data(id, Channel::Stdout, b"late")).await;
    guest.send(&exited(id, 100)).await;
    assert_eq!(reader.await.unwrap(), (Vec::new(), Read::End));
}

#[tokio::test]
async fn an_output_tells_that_the_link_was_lost_behind_what_had_come() {
    let (session, mut guest) = connect().await;
    let stream = open(&session, &mut guest).await;
    let mut stdout = stream.output(Channel::Stdout);
    guest
        .send(&data(stream.id, Channel::Stdout, b"begun"))
        .await;
    let reader = tokio::spawn(async move { read_all(&mut stdout).await });
    settle(&session, &mut guest).await;
    drop(guest);
    let expected = (b"begun".to_vec(), Read::Link(LinkError::Closed));
    assert_eq!(reader.await.unwrap(), expected);
}

/// An output without its end must not pass for a complete one.
#[tokio::test]
async fn an_output_that_did_not_end_says_so() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    let mut stdout = stream.output(Channel::Stdout);
    guest
        .send(&data(stream.id, Channel::Stdout, b"begun"))
        .await;
    guest.send(&exited(stream.id, 5)).await;
    assert!(stream.next_except_output().await.is_ok());
    assert_eq!(read_all(&mut stdout).await, (b"begun".to_vec(), Read::End));
    assert!(!stdout.has_ended());
}

#[tokio::test]
async fn outputs_that_are_read_apart_go_on_over_a_new_link() {
    let (session, mut guest) = connect_serial().await;
    let stream = open(&session, &mut guest).await;
    let id = stream.id;
    let mut stdout = stream.output(Channel::Stdout);
    let reader = tokio::spawn(async move { read_all(&mut stdout).await });
    guest.send(&started(id)).await;
    guest.send(&data(id, Channel::Stdout, b"one ")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv_resume(id).await.stdout.offset, 4);
    let sent = [
        attached(id, 4, 0, None),
        data(id, Channel::Stdout, b"two"),
        ends(id),
    ];
    guest.send(&sent.concat()).await;
    assert_eq!(reader.await.unwrap(), (b"one two".to_vec(), Read::End));
}
