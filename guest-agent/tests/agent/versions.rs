//! Hosts of other generations than the agent's.

use vmcell_wire::{Capabilities, Header, Hello, Kind, Request, StreamId, encode};

use crate::client::{Host, Reply, RunningAgent, Spec};

/// Connects with a changed hello, and waits for the agent's.
fn connect_with(agent: &RunningAgent, change: impl FnOnce(&mut Hello<'_>)) -> Host {
    let mut hello = Hello::new("another host", 64 * 1024, [0; 16]);
    change(&mut hello);
    let mut host = agent.connect_without_hello();
    host.window = hello.window;
    host.send(|out| encode::hello(out, &hello).unwrap());
    host.until(|reply| matches!(reply, Reply::Hello));
    host
}

/// Checks that the agent runs a program for the host.
fn assert_serves(host: &mut Host) {
    let stream = host.start(&Spec::shell("echo served"));
    let replies = host.until(|reply| reply.closes(stream));
    let exited = replies
        .iter()
        .any(|reply| matches!(reply, Reply::Exited(id, _) if *id == stream));
    assert!(exited, "{replies:?}");
}

#[test]
fn a_host_of_a_newer_generation_with_unknown_features_is_served() {
    let agent = RunningAgent::start();
    let mut host = connect_with(&agent, |hello| {
        hello.generation = u16::MAX;
        hello.capabilities = Capabilities::from_bits(u64::MAX);
    });
    assert_serves(&mut host);
}

#[test]
fn a_host_that_knows_fewer_features_is_served() {
    let agent = RunningAgent::start();
    let mut host = connect_with(&agent, |hello| hello.capabilities = Capabilities::NONE);
    assert_serves(&mut host);
}

#[test]
fn a_request_of_the_future_is_refused_by_name_and_the_link_lives() {
    let agent = RunningAgent::start();
    let mut host = connect_with(&agent, |hello| hello.generation = 2);
    // The number of a variant that does not exist.
    let payload = [200, 1, 2, 3];
    let stream = StreamId::new(1_000).unwrap();
    let header = Header {
        length: u32::try_from(payload.len()).unwrap(),
        stream: Some(stream),
        kind: Kind::Open,
    };
    host.send(|out| {
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&payload);
    });
    let replies = host.until(|reply| reply.closes(stream));
    let refused = replies.iter().any(|reply| {
        matches!(
            reply,
            Reply::Failed(id, vmcell_wire::FailureKind::Unsupported, ..) if *id == stream
        )
    });
    assert!(refused, "{replies:?}");
    let ping = host.open(&Request::Ping);
    host.until(|reply| *reply == Reply::Pong(ping));
}
