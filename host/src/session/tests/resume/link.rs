//! How a link is made again, and when it is not.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[tokio::test]
async fn a_reset_and_a_hello_are_the_first_words_on_a_new_link() {
    let (session, mut guest) = connect_serial().await;
    let mut nonces = Vec::new();
    for _ in 0..3 {
        session.drop_link();
        let (nonce, before) = guest.recv_reset().await;
        assert_eq!(before, b"");
        assert_eq!(guest.recv_any().await, Some(FromHost::Hello));
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
    let (session, mut guest) = connect_serial_with_window(MAX_WINDOW).await;
    let mut stream = open_started(&session, &mut guest).await;
    let (id, input) = (stream.id, stream.input());
    let write = tokio::spawn(async move {
        let all = input.write(Bytes::from(pattern(INPUT))).await;
        input.end();
        all
    });
    // More than the socket holds is on its way when the first bytes arrive.
    let Some(FromHost::Data(_, first)) = guest.recv().await else {
        panic!("no input came");
    };
    session.drop_link();
    let mut decoder = std::mem::replace(&mut guest.decoder, Decoder::new(Peer::Host));
    let (nonce, before) = guest.recv_reset().await;
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

    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let answer = [&nonce[..], &hello(MAX_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    guest.recv_resume(id).await;
    let stdin = at(received.len() as u64, MAX_WINDOW);
    guest.send(&attached(id, 0, 0, Some(stdin))).await;
    let rest = guest.recv_data(id, INPUT - received.len()).await;
    assert!(rest == pattern(INPUT)[received.len()..]);
    assert_eq!(guest.recv().await, Some(FromHost::End(id)));
    assert!(write.await.unwrap());
    finish(&mut stream, &mut guest, 0).await;
}

#[tokio::test]
async fn whatever_comes_before_the_answer_to_the_reset_is_skipped() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    // The first bytes of a frame, whose rest comes too late.
    let half = data(id, Channel::Stdout, &pattern(100_000));
    guest.send(&data(id, Channel::Stdout, b"before ")).await;
    guest.send(&half[..20]).await;
    settle_on(&mut stream, 7 + 12).await;
    session.drop_link();
    let (nonce, _) = guest.recv_reset().await;
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let mut late = half[20..].to_vec();
    late.extend(data(id, Channel::Stdout, b"old"));
    late.extend(close(id, &Outcome::Pong));
    late.extend(hello(GUEST_WINDOW, [8; 16]));
    late.extend([0xff; 70_000]);
    // A prefix of the answer, directly followed by the answer.
    late.extend(&nonce[..RESET_PART - 1]);
    late.extend(&nonce[..1]);
    late.extend(nonce);
    late.extend(hello(GUEST_WINDOW, BOOT_ID));
    let sending = async {
        for part in late.chunks(9_999) {
            guest.send(part).await;
            tokio::task::yield_now().await;
        }
        guest.recv_resume(id).await
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

#[tokio::test]
async fn an_answer_in_single_bytes_is_understood() {
    let (session, mut guest) = connect_serial().await;
    session.drop_link();
    let (nonce, _) = guest.recv_reset().await;
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    for byte in [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat() {
        guest.send(&[byte]).await;
        tokio::task::yield_now().await;
    }
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_link_may_break_before_it_was_used() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"one ")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    let (nonce, _) = guest.recv_reset().await;
    session.drop_link();
    let answer = [&nonce[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    guest.send(&answer).await;
    // The answer to the request that came with that link, if it came, is late.
    guest.send(&attached(id, 4, 0, None)).await;
    guest.answer_reset(GUEST_WINDOW).await;
    assert_eq!(guest.recv_resume(id).await.stdout, at(4, WINDOW - 4));
    guest.send(&attached(id, 4, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b"two")).await;
    assert_eq!(finish(&mut stream, &mut guest, 7).await, b"one two");
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
        let (session, mut guest) = connect_serial().await;
        let mut stream = open_started(&session, &mut guest).await;
        session.drop_link();
        let (nonce, _) = guest.recv_reset().await;
        guest.send(&[&nonce[..], &answer].concat()).await;
        assert_eq!(stream.next().await.unwrap_err(), LinkError::WrongBoot);
        assert_eq!(link_error(&session).await, LinkError::WrongBoot);
        assert_eq!(
            session.open(&exec()).unwrap_err(),
            OpenError::Link(LinkError::WrongBoot)
        );
    }
}

#[tokio::test]
async fn something_else_than_a_hello_on_the_new_link_is_refused() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    session.drop_link();
    let (nonce, _) = guest.recv_reset().await;
    let answer = [&nonce[..], &data(stream.id, Channel::Stdout, b"x")].concat();
    guest.send(&answer).await;
    let error = stream.next().await.unwrap_err();
    assert_eq!(error, LinkError::Violation(WireError::NotVmcell));
}

#[tokio::test]
async fn a_guest_that_is_gone_is_not_asked_for_a_new_link() {
    for while_there_is_none in [false, true] {
        let (session, mut guest) = connect_serial().await;
        let mut stream = open_started(&session, &mut guest).await;
        if while_there_is_none {
            session.drop_link();
            guest.recv_reset().await;
        }
        drop(guest);
        assert_eq!(stream.next().await.unwrap_err(), LinkError::Closed);
        assert_eq!(link_error(&session).await, LinkError::Closed);
    }
}

#[tokio::test]
async fn a_violation_is_not_forgiven_with_a_new_link() {
    let (session, mut guest) = connect_serial().await;
    let mut stream = open_started(&session, &mut guest).await;
    guest.send(&started(stream.id)).await;
    let malformed = LinkError::Violation(WireError::Malformed);
    assert_eq!(stream.next().await.unwrap_err(), malformed);
    assert_eq!(link_error(&session).await, malformed);
}

#[tokio::test]
async fn a_connection_cannot_be_made_anew() {
    let (session, mut guest) = connect().await;
    let mut stream = open(&session, &mut guest).await;
    session.drop_link();
    assert_eq!(stream.next().await.unwrap_err(), LinkError::Dropped);
    assert_eq!(link_error(&session).await, LinkError::Dropped);
    while guest.recv().await.is_some() {}
}

/// This takes 5 seconds, the timeout for the agent's hello.
#[tokio::test]
async fn a_guest_that_does_not_answer_a_reset_is_given_up() {
    use std::io::Write;
    let (silent, mut silent_guest) = connect_serial().await;
    let (loud, mut loud_guest) = connect_serial().await;
    let mut stream = open_started(&silent, &mut silent_guest).await;
    silent.drop_link();
    loud.drop_link();
    silent_guest.recv_reset().await;
    let (nonce, _) = loud_guest.recv_reset().await;
    // Prefixes of the answer, which take longer to scan than to send: on a thread
    // of its own, so that there is always something to skip.
    let nearly = nonce[..RESET_PART - 1].repeat(5000);
    let stop = Arc::new(AtomicBool::new(false));
    let flood = tokio::task::spawn_blocking({
        let mut link = loud_guest.link.into_std().unwrap();
        link.set_nonblocking(false).unwrap();
        let stop = stop.clone();
        move || while !stop.load(Ordering::Relaxed) && link.write(&nearly).is_ok() {}
    });
    // Ends the flood if it keeps everything else from running.
    let (over, is_over) = std::sync::mpsc::channel();
    let watchdog = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let in_time = is_over.recv_timeout(Duration::from_secs(30)).is_ok();
            stop.store(true, Ordering::Relaxed);
            in_time
        }
    });
    assert_eq!(stream.next().await.unwrap_err(), LinkError::PeerNotReading);
    assert_eq!(link_error(&silent).await, LinkError::PeerNotReading);
    let error = link_error(&loud).await;
    let _ = over.send(());
    assert!(watchdog.join().unwrap(), "only the watchdog ended it");
    assert_eq!(error, LinkError::PeerNotReading);
    drop((silent, loud));
    flood.await.unwrap();
}
