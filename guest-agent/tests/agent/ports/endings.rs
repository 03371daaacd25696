//! Connections that cannot be made, or that end.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
};

use rustix::net::sockopt::set_socket_linger;
use vmcell_wire::{Channel, FailureKind, Request, Stage};

use super::{Server, assert_reset, dial, unused_port};
use crate::client::{Reply, RunningAgent};

const REFUSED: u16 = 111;
const RESET: u16 = 104;
const BROKEN_PIPE: u16 = 32;

#[test]
fn where_nobody_listens_a_host_is_told_so() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (port, _kept) = unused_port();
    let stream = host.open(&Request::Dial { port });
    let refused = Reply::Failed(stream, FailureKind::NotFound, REFUSED, Stage::Dial);
    assert_eq!(host.outcome(stream), refused);
    let nowhere = host.open(&Request::Dial { port: 0 });
    assert!(matches!(
        host.outcome(nowhere),
        Reply::Failed(_, _, _, Stage::Dial)
    ));
}

#[test]
fn a_program_that_resets_is_told_from_one_that_ends() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    socket.write_all(b"half a mes").unwrap();
    host.until_bytes(stream, 10);
    set_socket_linger(&socket, Some(std::time::Duration::ZERO)).unwrap();
    drop(socket);
    let reset = Reply::Failed(stream, FailureKind::Other, RESET, Stage::Dial);
    assert_eq!(host.outcome(stream), reset);
    assert!(!host.has_reply(&Reply::End(stream, Channel::Stdout)));
}

/// The program answers and exits without having read all its input.
#[test]
fn an_early_answer_is_not_lost() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    host.write_stdin(stream, &[7; 200_000]);
    socket.read_exact(&mut [0; 1000]).unwrap();
    socket.write_all(b"too large").unwrap();
    host.until_bytes(stream, 9);
    drop(socket);
    let reset = Reply::Failed(stream, FailureKind::Other, RESET, Stage::Dial);
    assert_eq!(host.outcome(stream), reset);
    assert_eq!(host.output(stream, Channel::Stdout), b"too large");
}

#[test]
fn who_talks_to_a_program_that_has_gone_is_told() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    socket.write_all(b"goodbye").unwrap();
    drop(socket);
    host.first(|reply| *reply == Reply::End(stream, Channel::Stdout));
    // The first write is answered with a reset.
    host.write_stdin(stream, b"are you there?");
    let broken = Reply::Failed(stream, FailureKind::Other, BROKEN_PIPE, Stage::Dial);
    assert_eq!(host.outcome(stream), broken);
    assert_eq!(host.output(stream, Channel::Stdout), b"goodbye");
}

#[test]
fn a_host_that_cancels_breaks_the_connection() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, socket) = server.connect(&mut host);
    host.cancel(stream);
    assert_eq!(host.outcome(stream), Reply::Done(stream));
    assert_reset(&socket);
}

#[test]
fn a_link_that_is_lost_breaks_its_connections() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut other = agent.connect();
    let server = Server::new();
    let (_, first) = server.connect(&mut host);
    let (_, second) = server.connect(&mut host);
    let (theirs, mut third) = server.connect(&mut other);
    host.close();
    assert_reset(&first);
    assert_reset(&second);
    third.write_all(b"still here").unwrap();
    other.until_bytes(theirs, 10);
}

/// A server whose backlog is full does not answer at all.
#[test]
fn a_connection_that_nobody_accepts_can_be_given_up() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    rustix::net::listen(&server.listener, 0).unwrap();
    dial(&mut host, server.port());
    let waiting = host.open(&Request::Dial {
        port: server.port(),
    });
    assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
    host.write_stdin(waiting, b"early words");
    host.cancel(waiting);
    assert_eq!(host.outcome(waiting), Reply::Done(waiting));
    assert!(!host.has_reply(&Reply::Connected(waiting)));
    server.accept();
}

#[test]
fn a_host_that_has_said_all_leaves_in_order() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    host.feed(stream, b"that was all");
    host.cancel(stream);
    assert_eq!(host.outcome(stream), Reply::Done(stream));
    let mut heard = String::new();
    socket.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "that was all");
}

/// Without a server, the kernel sooner or later gives a socket the very port
/// that it dials: it tries one after the other.
#[test]
fn a_connection_never_finds_itself() {
    const AT_ONCE: usize = 100;
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let range: Vec<u16> = range
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    // For connecting sockets the kernel uses every second port, from the first
    // on.
    let port = (range[0]..range[1])
        .step_by(2)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap();
    let ports = usize::from(range[1] - range[0]) / 2;
    for _ in 0..=ports / AT_ONCE {
        let streams: Vec<_> = (0..AT_ONCE)
            .map(|_| host.open(&Request::Dial { port }))
            .collect();
        for stream in streams {
            let refused = Reply::Failed(stream, FailureKind::NotFound, REFUSED, Stage::Dial);
            let reply =
                host.first(|reply| *reply == Reply::Connected(stream) || reply.closes(stream));
            assert_eq!(reply, refused);
        }
        host.forget();
    }
}
