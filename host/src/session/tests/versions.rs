//! Agents of later versions.

use super::*;

/// A message with a number that this version does not know.
const UNKNOWN: [u8; 4] = [99, 1, 2, 3];

#[tokio::test]
async fn what_a_newer_agent_adds_is_ignored_and_the_link_goes_on() {
    let newer = Hello {
        generation: 9,
        capabilities: Capabilities::from_bits(u64::MAX),
        ..Hello::new("vmcell-agent 9.0.0", GUEST_WINDOW, BOOT_ID)
    };
    let newer = frames(|out| encode::hello(out, &newer).unwrap());
    let (session, mut guest) = connect_to(&newer).await;
    let session = session.unwrap();
    assert_eq!(guest.recv().await, Some(FromHost::Hello));
    // An event that this version does not know, between those that it does.
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&frame(Kind::Event, Some(id), &UNKNOWN)).await;
    guest.send(&started(id)).await;
    guest.send(&data(id, Channel::Stdout, b"output")).await;
    guest.send(&ends(id)).await;
    guest.send(&close(id, &Outcome::Exited(exit(6)))).await;
    let (bytes, end) = read_to_end(&mut stream).await;
    assert_eq!(bytes, b"output");
    assert_eq!(end.unwrap().outcome(), Outcome::Exited(exit(6)));
    // An outcome that it does not know.
    let mut stream = open(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&frame(Kind::Close, Some(id), &UNKNOWN)).await;
    let (_, end) = read_to_end(&mut stream).await;
    assert_eq!(end.unwrap().outcome(), Outcome::Unknown);
    settle(&session, &mut guest).await;
}
