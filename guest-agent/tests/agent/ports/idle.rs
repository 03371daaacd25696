//! Idle connections, and many of them.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
};

use vmcell_wire::{Channel, Request};

use super::{Server, dial};
use crate::client::{Reply, RunningAgent};

/// Returns the resident memory of the agent, in KiB.
fn resident(agent: &RunningAgent) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

/// Returns how often the agent went to sleep.
fn sleeps(agent: &RunningAgent) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.child.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("voluntary_ctxt_switches:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn a_host_that_gives_no_credit_stops_the_program_and_nothing_else() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(10_000);
    host.credit_automatically = false;
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    let before = resident(&agent);
    socket.set_nonblocking(true).unwrap();
    // Until the kernel's socket buffers are full.
    let mut written = 0;
    let stopped = loop {
        match socket.write(&[7; 64 * 1024]) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
        assert!(written < 256 << 20, "it takes everything");
        assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
    };
    assert_eq!(stopped.kind(), ErrorKind::WouldBlock);
    host.until_bytes(stream, 10_000);
    assert_eq!(host.output(stream, Channel::Stdout).len(), 10_000);
    let grown = resident(&agent).saturating_sub(before);
    assert!(grown < 512, "the agent grew by {grown} KiB");
    // Other connections still work.
    let (other, mut another) = server.connect(&mut host);
    another.write_all(b"other").unwrap();
    host.until_bytes(other, 5);
    // And so does this one again.
    host.credit_automatically = true;
    host.grant(stream, Channel::Stdout, 10_000);
    host.until_bytes(stream, written);
}

#[test]
fn a_program_that_does_not_read_is_sent_a_window_and_no_more() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    let mut written = 0;
    // Credit is returned as long as the kernel accepts the bytes.
    loop {
        host.write_stdin(stream, &vec![7; 128 * 1024]);
        written += 128 * 1024;
        assert!(written < 256 << 20, "it takes everything");
        let ping = host.open(&Request::Ping);
        let replies = host.until(|reply| reply.closes(ping));
        let credit = |reply: &Reply| matches!(reply, Reply::Credit(id, _) if *id == stream);
        if written > 128 * 1024 && !replies.iter().any(credit) {
            break;
        }
    }
    let mut heard = 0;
    let mut buffer = vec![0; 256 * 1024];
    while heard < written {
        heard += socket.read(&mut buffer).unwrap();
    }
    assert_eq!(heard, written);
}

#[test]
fn hundreds_of_connections_are_served_at_once() {
    const COUNT: usize = 300;
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let mut pairs = Vec::new();
    for _ in 0..COUNT {
        pairs.push(server.connect(&mut host));
    }
    // Idle ones cost nothing: pings are all that wakes the agent.
    assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
    let before = sleeps(&agent);
    for _ in 0..10 {
        assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
    }
    let woken = sleeps(&agent) - before;
    assert!(woken <= 40, "woken {woken} times for ten pings");
    for (number, (stream, socket)) in pairs.iter_mut().enumerate() {
        host.write_stdin(*stream, format!("{number:08}").as_bytes());
        let mut heard = [0; 8];
        socket.read_exact(&mut heard).unwrap();
        socket.write_all(&heard).unwrap();
    }
    for (number, (stream, _)) in pairs.iter().enumerate() {
        host.until_bytes(*stream, 8);
        let heard = host.output(*stream, Channel::Stdout);
        assert_eq!(heard, format!("{number:08}").as_bytes());
    }
    for (stream, socket) in pairs {
        drop(socket);
        host.feed(stream, b"");
        assert_eq!(host.outcome(stream), Reply::Done(stream));
    }
}

#[test]
fn too_many_connections_are_refused_and_their_places_used_again() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    rustix::net::listen(&server.listener, 1024).unwrap();
    let mut streams = Vec::new();
    let refused = loop {
        let port = server.port();
        let stream = host.open(&Request::Dial { port });
        match host.first(|reply| *reply == Reply::Connected(stream) || reply.closes(stream)) {
            Reply::Connected(_) => streams.push(stream),
            other => break other,
        }
        assert!(streams.len() < 512, "there is no end to it");
    };
    assert!(
        matches!(
            refused,
            Reply::Failed(_, vmcell_wire::FailureKind::Limit, ..)
        ),
        "{refused:?}"
    );
    for stream in streams {
        host.cancel(stream);
        assert_eq!(host.outcome(stream), Reply::Done(stream));
    }
    dial(&mut host, server.port());
}
