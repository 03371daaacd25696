//! Guests that speak the protocol of the network themselves.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::Mutex,
};

use vmcell_wire::{
    files::record::{self, Piece},
    network::{Answer, Refusal, Target, Want},
};

use super::*;
use crate::network::{
    BoxFuture, Destination, Dialer, HostName, NetworkHooks, NetworkPolicy, OwnNetwork, Resolver,
    Upstream,
};

/// Remembers what it is asked for. Every name is this machine, and nothing can be reached.
#[derive(Clone, Debug, Default)]
struct Outside(Arc<Mutex<Vec<String>>>);

impl Resolver for Outside {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.lock().unwrap().push(name.to_string());
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

impl Dialer for Outside {
    fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>> {
        self.0.lock().unwrap().push(host.address.to_string());
        Box::pin(async { Err(io::ErrorKind::HostUnreachable.into()) })
    }
}

fn records(wants: &[Want<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for want in wants {
        record::encode(&mut out, want).unwrap();
    }
    out
}

/// Starts the network of a guest. Returns it with the stream on which the guest names
/// what it wants.
async fn start(
    session: &Arc<Session>,
    guest: &mut Guest,
    outside: &Outside,
) -> (OwnNetwork, StreamId) {
    let policy = NetworkPolicy::rules().allow("good.test:443").unwrap();
    let hooks = NetworkHooks {
        #[cfg(feature = "broker")]
        broker: None,
        resolver: Arc::new(outside.clone()),
        dialer: Arc::new(outside.clone()),
        observer: None,
    };
    let starting = OwnNetwork::start(Some(policy), hooks, session.clone());
    let answering = async {
        let Some(FromHost::Open(id)) = guest.recv().await else {
            panic!("it is not asked for");
        };
        let ready = records(&[Want::Ready]);
        guest.send(&data(id, Channel::Stdout, &ready)).await;
        id
    };
    let (network, id) = tokio::join!(starting, answering);
    (network.unwrap(), id)
}

/// Receives so many answers.
async fn recv_answers(guest: &mut Guest, id: StreamId, count: usize) -> Vec<Answer> {
    let mut reader = record::Reader::new();
    let mut answers = Vec::new();
    while answers.len() < count {
        let bytes = match guest.recv().await {
            Some(FromHost::Data(stream, bytes)) if stream == id => bytes,
            Some(FromHost::Credit(..)) => continue,
            other => panic!("{other:?}"),
        };
        let mut rest = &bytes[..];
        while let Some(Piece::Message(message)) = reader.next(&mut rest).unwrap() {
            answers.push(record::decode(message).unwrap());
        }
    }
    answers
}

#[tokio::test]
async fn a_guest_that_asks_for_everything_gets_what_the_policy_allows() {
    let (session, mut guest) = connect().await;
    let session = Arc::new(session);
    let outside = Outside::default();
    let (_network, id) = start(&session, &mut guest, &outside).await;
    let long = "a.".repeat(126);
    let targets = [
        Target::Name("evil.test"),
        Target::Name("good.test.evil.test"),
        Target::Name("good.test\0"),
        Target::Name("good.test:443"),
        Target::Name("127.0.0.1"),
        Target::Name("0x7f.1"),
        Target::Name("2130706433"),
        Target::Name("g\u{43e}\u{43e}d.test"),
        Target::Name(&long),
        Target::Name(""),
        Target::V4([127, 0, 0, 1]),
        Target::V4([1, 1, 1, 1]),
        Target::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets()),
        Target::V6([0; 16]),
    ];
    let mut wants: Vec<_> = (1..)
        .zip(targets)
        .map(|(ticket, target)| Want::Connect {
            ticket,
            target,
            port: 443,
        })
        .collect();
    for (ticket, name) in [(100, "data.evil.test"), (101, "x y"), (102, "127.0.0.1")] {
        wants.push(Want::Lookup { ticket, name });
    }
    guest
        .send(&data(id, Channel::Stdout, &records(&wants)))
        .await;
    for answer in recv_answers(&mut guest, id, wants.len()).await {
        let Answer::Refuse { refusal, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(refusal, Refusal::NotAllowed);
    }
    assert!(outside.0.lock().unwrap().is_empty());
    // The only name that is allowed leads to this machine, and is not connected to.
    let wanted = Want::Connect {
        ticket: 200,
        target: Target::Name("GOOD.test."),
        port: 443,
    };
    guest
        .send(&data(id, Channel::Stdout, &records(&[wanted])))
        .await;
    let answers = recv_answers(&mut guest, id, 1).await;
    let refused = Answer::Refuse {
        ticket: 200,
        refusal: Refusal::NotAllowed,
    };
    assert_eq!(answers, [refused]);
    assert_eq!(*outside.0.lock().unwrap(), ["good.test"]);
}

#[tokio::test]
async fn a_guest_that_does_not_read_its_answers_does_not_fill_the_host() {
    let (session, mut guest) = connect().await;
    let session = Arc::new(session);
    let (network, id) = start(&session, &mut guest, &Outside::default()).await;
    let want = records(&[Want::Lookup {
        ticket: 1,
        name: "evil.test",
    }]);
    // Within the host's window, and more answers than there is room for in the guest's.
    let count = WINDOW as usize / want.len() / 2;
    for _ in 0..count {
        guest.send(&data(id, Channel::Stdout, &want)).await;
    }
    let decisions = || network.handle().status().totals.decisions;
    // Until the host takes no more of them.
    let mut decided = u64::MAX;
    while decided != decisions() {
        decided = decisions();
        settle_past(&session, &mut guest).await;
    }
    assert!((1..count as u64).contains(&decided), "{decided}");
}

#[tokio::test]
async fn nonsense_ends_the_network_and_not_the_session() {
    for nonsense in [
        &b"\xff\xff\xff\x7f"[..],
        b"\x01\0\0\0\x7f",
        b"\x03\0\0\x80raw",
    ] {
        let (session, mut guest) = connect().await;
        let session = Arc::new(session);
        let (_network, id) = start(&session, &mut guest, &Outside::default()).await;
        guest.send(&data(id, Channel::Stdout, nonsense)).await;
        assert_eq!(
            guest.recv().await,
            Some(FromHost::Cancel(id)),
            "{nonsense:?}"
        );
        assert!(session.link_error().borrow().is_none());
    }
}
