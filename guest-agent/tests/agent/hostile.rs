//! An agent survives hosts that do not keep the protocol.

use crate::client::{RunningAgent, Said};
use vmcell_wire::{Channel, Header, Kind, Request, StreamId, encode};

/// A well-behaved host is still served.
fn assert_alive(agent: &RunningAgent) {
    let mut host = agent.connect();
    let ping = host.open(&Request::Ping);
    host.until(|said| *said == Said::Pong(ping));
}

#[test]
fn garbage_ends_the_link_and_nothing_else() {
    let agent = RunningAgent::start();
    for garbage in [&[0xff; 64][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 8]] {
        let mut host = agent.connect_silently();
        host.send(|out| out.extend_from_slice(garbage));
        host.until(|said| *said == Said::HungUp);
        assert_alive(&agent);
    }
}

#[test]
fn a_request_before_the_hello_ends_the_link() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_silently();
    host.open(&Request::Ping);
    host.until(|said| *said == Said::HungUp);
    assert_alive(&agent);
}

#[test]
fn an_oversize_frame_ends_the_link() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let header = Header {
        length: u32::MAX,
        stream: StreamId::new(1).ok(),
        kind: Kind::Open,
    };
    host.send(|out| out.extend_from_slice(&header.to_bytes()));
    host.until(|said| *said == Said::HungUp);
    assert_alive(&agent);
}

#[test]
fn input_past_its_credit_ends_the_link() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec_in(&["sleep", "1000"], "", vmcell_wire::Stdin::Stream);
    // More than the window, the pipe and every socket buffer together.
    let header = encode::data_header(stream, Channel::Stdin, 200 * 1024).unwrap();
    host.send(|out| {
        for _ in 0..3 {
            out.extend_from_slice(&header);
            out.resize(out.len() + 200 * 1024, 0);
        }
    });
    host.until(|said| *said == Said::HungUp);
    assert_alive(&agent);
}

#[test]
fn an_unknown_request_is_refused_and_the_link_lives() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = StreamId::new(77).unwrap();
    let header = Header {
        length: 2,
        stream: Some(stream),
        kind: Kind::Open,
    };
    host.send(|out| {
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&[0x7f, 0]);
    });
    host.until(|said| matches!(said, Said::Failed(id, ..) if *id == stream));
    let ping = host.open(&Request::Ping);
    host.until(|said| *said == Said::Pong(ping));
}

#[test]
fn frames_for_streams_that_do_not_exist_are_ignored() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let nobody = StreamId::new(9999).unwrap();
    host.write_stdin(nobody, b"x");
    host.send(|out| encode::end(out, nobody, Channel::Stdin));
    host.send(|out| encode::cancel(out, nobody));
    host.grant(nobody, Channel::Stdout, 1);
    let ping = host.open(&Request::Ping);
    host.until(|said| *said == Said::Pong(ping));
}
