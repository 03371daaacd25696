//! Data over a connection.

use std::{
    io::{Read, Write},
    net::Shutdown,
    thread,
};

use sha2::{Digest, Sha256};
use vmcell_wire::{Channel, encode};

use super::{Server, dial};
use crate::client::{Reply, RunningAgent};

#[test]
fn what_is_said_comes_back_from_who_echoes_it() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    for word in ["one", "two", "three"] {
        host.write_stdin(stream, word.as_bytes());
        let mut heard = vec![0; word.len()];
        socket.read_exact(&mut heard).unwrap();
        socket.write_all(&heard).unwrap();
        let before = host.output(stream, Channel::Stdout).len();
        host.until_bytes(stream, before + word.len());
    }
    assert_eq!(host.output(stream, Channel::Stdout), b"onetwothree");
}

#[test]
fn a_host_that_has_said_all_can_still_be_answered() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    host.feed(stream, b"a question");
    let mut heard = String::new();
    socket.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "a question");
    socket.write_all(b"an answer").unwrap();
    drop(socket);
    assert_eq!(host.outcome(stream), Reply::Done(stream));
    assert_eq!(host.output(stream, Channel::Stdout), b"an answer");
}

#[test]
fn a_program_that_has_said_all_can_still_be_told_more() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    socket.write_all(b"all I know").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    host.first(|reply| *reply == Reply::End(stream, Channel::Stdout));
    assert_eq!(host.output(stream, Channel::Stdout), b"all I know");
    host.feed(stream, b"and so on");
    let mut heard = String::new();
    socket.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "and so on");
    assert_eq!(host.outcome(stream), Reply::Done(stream));
}

#[test]
fn a_server_is_found_that_listens_on_the_other_address() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::at("[::1]:0");
    let (stream, mut socket) = server.connect(&mut host);
    socket.write_all(b"six").unwrap();
    host.until_bytes(stream, 3);
    assert_eq!(host.output(stream, Channel::Stdout), b"six");
}

/// Sends far more than any buffer holds, both ways at once, with a small
/// window.
#[test]
fn every_byte_arrives_both_ways() {
    const SIZE: usize = 64 << 20;
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(16 * 1024);
    let server = Server::new();
    let stream = dial(&mut host, server.port());
    let writer = server.accept();
    let mut reader = writer.try_clone().unwrap();
    let sent: Vec<u8> = noise().take(SIZE).collect();
    let expected = sent.clone();
    let writing = thread::spawn(move || {
        (&writer).write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let reading = thread::spawn(move || {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => return hasher.finalize(),
                count => hasher.update(&buffer[..count]),
            }
        }
    });
    host.feed(stream, &expected);
    assert_eq!(host.outcome(stream), Reply::Done(stream));
    writing.join().unwrap();
    assert_eq!(reading.join().unwrap(), Sha256::digest(&expected));
    assert!(host.output(stream, Channel::Stdout) == expected);
}

/// Mixes frames of all kinds and sizes on one link.
#[test]
fn connections_and_processes_share_a_link() {
    const SIZE: usize = 4 << 20;
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(128 * 1024);
    let server = Server::new();
    let bytes: Vec<u8> = noise().take(SIZE).collect();
    let mut writers = Vec::new();
    let mut streams = Vec::new();
    for piece in [700, 5_000, 20_000, SIZE] {
        let (stream, mut socket) = server.connect(&mut host);
        streams.push(stream);
        let bytes = bytes.clone();
        writers.push(thread::spawn(move || {
            for piece in bytes.chunks(piece) {
                socket.write_all(piece).unwrap();
            }
        }));
    }
    let count = format!("{SIZE}");
    let process = host.exec(&["head", "-c", &count, "/dev/zero"]);
    for stream in &streams {
        host.first(|reply| *reply == Reply::End(*stream, Channel::Stdout));
        assert!(host.output(*stream, Channel::Stdout) == bytes);
    }
    host.exit(process);
    assert!(host.output(process, Channel::Stdout) == vec![0; SIZE]);
    for writer in writers {
        writer.join().unwrap();
    }
}

#[test]
fn what_follows_the_end_is_ignored() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let server = Server::new();
    let (stream, mut socket) = server.connect(&mut host);
    host.feed(stream, b"the end");
    host.write_stdin(stream, b"more");
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    let mut heard = String::new();
    socket.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "the end");
    drop(socket);
    assert_eq!(host.outcome(stream), Reply::Done(stream));
}

/// Returns pseudo-random bytes.
fn noise() -> impl Iterator<Item = u8> {
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
}
