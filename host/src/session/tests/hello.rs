//! Which agents the host accepts.

use super::*;

#[tokio::test]
async fn what_is_not_a_hello_is_refused_and_hung_up_on() {
    let stream = StreamId::new(1).unwrap();
    let mut other_magic = hello(GUEST_WINDOW, BOOT_ID);
    other_magic[Header::SIZE] ^= 1;
    for garbage in [
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        other_magic,
        started(stream),
        close(stream, &Outcome::Pong),
    ] {
        let (session, mut guest) = connect_to(&garbage).await;
        let error = session.unwrap_err();
        assert!(
            matches!(error, LinkError::Violation(_)),
            "{garbage:?}: {error:?}"
        );
        while guest.recv().await.is_some() {}
    }
}

#[tokio::test]
async fn a_guest_that_hangs_up_before_or_within_its_hello_is_lost() {
    let hello = hello(GUEST_WINDOW, BOOT_ID);
    for length in [0, 3, hello.len() - 1] {
        let (host, mut guest) = UnixStream::pair().unwrap();
        guest.write_all(&hello[..length]).await.unwrap();
        drop(guest);
        let error = Session::connect(Link::socket(host), Some(BOOT_ID))
            .await
            .unwrap_err();
        assert_eq!(error, LinkError::Closed, "after {length} bytes");
    }
}

#[tokio::test]
async fn the_agent_of_another_boot_is_refused() {
    let (session, mut guest) = connect_to(&hello(GUEST_WINDOW, [8; 16])).await;
    assert_eq!(session.unwrap_err(), LinkError::WrongBoot);
    while guest.recv().await.is_some() {}
}

#[tokio::test]
async fn what_an_agent_cannot_do_is_not_asked_of_it() {
    let mut old = Hello::new("an old agent", GUEST_WINDOW, BOOT_ID);
    old.capabilities = Capabilities::POWER_OFF;
    let old = frames(|out| encode::hello(out, &old).unwrap());
    let (session, mut guest) = connect_to(&old).await;
    let session = session.unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    assert_eq!(
        session.open(&exec()).unwrap_err(),
        OpenError::Unsupported(Capabilities::PROCESSES)
    );
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn a_name_with_escape_sequences_is_made_safe() {
    let evil = Hello::new("\x1b]0;owned\x07", GUEST_WINDOW, BOOT_ID);
    let evil = frames(|out| encode::hello(out, &evil).unwrap());
    let (session, _guest) = connect_to(&evil).await;
    let build = session.unwrap().peer().build.clone();
    assert!(!build.chars().any(char::is_control), "{build:?}");
}

#[tokio::test]
async fn an_agent_of_a_newer_generation_with_features_nobody_knows_is_served() {
    let mut new = Hello::new("an agent from the future", GUEST_WINDOW, BOOT_ID);
    new.generation = u16::MAX;
    new.capabilities = Capabilities::from_bits(u64::MAX);
    let new = frames(|out| encode::hello(out, &new).unwrap());
    let (session, mut guest) = connect_to(&new).await;
    let session = session.unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let mut stream = open(&session, &mut guest).await;
    let sent = [started(stream.id), ends(stream.id), exited(stream.id, 0)];
    guest.send(&sent.concat()).await;
    assert!(matches!(
        stream.next().await,
        Ok(StreamEvent::Started { .. })
    ));
    settle(&session, &mut guest).await;
}

#[tokio::test]
async fn an_agent_without_any_feature_is_still_an_agent() {
    let mut bare = Hello::new("a bare agent", GUEST_WINDOW, BOOT_ID);
    bare.capabilities = Capabilities::NONE;
    let bare = frames(|out| encode::hello(out, &bare).unwrap());
    let (session, mut guest) = connect_to(&bare).await;
    let session = session.unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    let lacking = [
        (Request::PowerOff { grace_ms: 1 }, Capabilities::POWER_OFF),
        (Request::Dial { port: 80 }, Capabilities::PORTS),
        (Request::List { after: 0 }, Capabilities::PROCESSES),
    ];
    for (request, lacks) in lacking {
        let refused = session.open(&request).unwrap_err();
        assert_eq!(refused, OpenError::Unsupported(lacks));
    }
    // Requests that every agent supports are sent.
    settle(&session, &mut guest).await;
}
