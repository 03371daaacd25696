//! The agent survives hosts that violate the protocol.

use crate::client::{Reply, RunningAgent, Spec};
use vmcell_wire::{
    Attach, Channel, FailureKind, Header, Kind, Position, Request, Selector, Stage, StreamId,
    encode,
};

/// Checks that a well-behaved host is still served.
fn assert_alive(agent: &RunningAgent) {
    let mut host = agent.connect();
    let ping = host.open(&Request::Ping);
    host.until(|reply| *reply == Reply::Pong(ping));
}

#[test]
fn garbage_ends_the_link_and_nothing_else() {
    let agent = RunningAgent::start();
    for garbage in [&[0xff; 64][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 8]] {
        let mut host = agent.connect_without_hello();
        host.send(|out| out.extend_from_slice(garbage));
        host.until(|reply| *reply == Reply::Disconnected);
        assert_alive(&agent);
    }
}

#[test]
fn a_request_before_the_hello_ends_the_link() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_without_hello();
    host.open(&Request::Ping);
    host.until(|reply| *reply == Reply::Disconnected);
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
    host.until(|reply| *reply == Reply::Disconnected);
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
    host.until(|reply| *reply == Reply::Disconnected);
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
    host.until(|reply| matches!(reply, Reply::Failed(id, ..) if *id == stream));
    let ping = host.open(&Request::Ping);
    host.until(|reply| *reply == Reply::Pong(ping));
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
    host.until(|reply| *reply == Reply::Pong(ping));
}

#[test]
fn acknowledgements_of_nothing_are_ignored() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let running = host.exec(&["sleep", "1000"]);
    for stream in [running, StreamId::new(9999).unwrap()] {
        host.send(|out| encode::ack(out, stream));
    }
    let ping = host.open(&Request::Ping);
    host.until(|reply| *reply == Reply::Pong(ping));
    assert_eq!(host.list(0).0.len(), 1);
}

#[test]
fn a_foreign_ticket_opens_nothing() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    host.exec(&["sleep", "1000"]);
    for ticket in [u64::MAX, 1 << 63] {
        let stream = host.resume(ticket, 0, 0);
        host.until(
            |reply| matches!(reply, Reply::Failed(id, FailureKind::NotFound, ..) if *id == stream),
        );
    }
}

#[test]
fn absurd_windows_are_refused() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = host.spawn(&Spec::new(&["sleep", "1000"]).background());
    let refused = host.refused(&Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: Some(Position {
            offset: 0,
            window: u32::MAX,
        }),
        stderr: None,
        stdin: false,
    }));
    assert_eq!(refused, (FailureKind::Invalid, Stage::Request));
}

#[test]
fn credit_without_end_ends_the_link() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec(&["sleep", "1000"]);
    host.grant(stream, Channel::Stdout, u32::MAX);
    host.until(|reply| *reply == Reply::Disconnected);
    assert_alive(&agent);
}

#[test]
fn too_many_open_streams_end_the_link() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = host.spawn(&Spec::new(&["sleep", "1000"]).background());
    for _ in 0..2000 {
        host.attach(Selector::Id(id), 0, 0);
    }
    host.until(|reply| *reply == Reply::Disconnected);
    assert_alive(&agent);
}

#[test]
fn many_requests_at_once_are_all_answered() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut last = None;
    for number in 0..2000 {
        last = Some(host.open(&match number % 3 {
            0 => Request::Ping,
            1 => Request::List { after: 0 },
            _ => Request::Forget {
                process: Selector::Id(number),
            },
        }));
    }
    let last = last.unwrap();
    host.until(|reply| matches!(reply, Reply::EndOfList(id, _) | Reply::Pong(id) if *id == last));
}
