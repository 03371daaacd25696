//! Recorded conversations with hosts of other versions, byte by byte.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
};

use vmcell_wire::Header;

use crate::client::RunningAgent;

/// Plays the host of a conversation, and compares what the agent answers.
fn play(conversation: &str) {
    let agent = RunningAgent::start();
    let mut link = agent.connect_raw();
    for (number, line) in conversation.lines().enumerate() {
        match line.split_once(' ') {
            Some((">", frame)) => link.write_all(&bytes(frame)).unwrap(),
            Some(("<", expected)) => {
                let frame = hex(&read_frame(&mut link));
                assert!(matches(&frame, expected), "line {}: {frame}", number + 1);
            }
            _ => assert!(line.is_empty() || line.starts_with('#'), "{line}"),
        }
    }
}

fn read_frame(link: &mut UnixStream) -> Vec<u8> {
    let mut frame = vec![0; Header::SIZE];
    link.read_exact(&mut frame).unwrap();
    let length = u32::from_le_bytes(frame[..4].try_into().unwrap());
    frame.resize(Header::SIZE + length as usize, 0);
    link.read_exact(&mut frame[Header::SIZE..]).unwrap();
    frame
}

/// Compares a frame with a pattern, in which `..` stands for any bytes.
fn matches(frame: &str, pattern: &str) -> bool {
    let mut parts = pattern.split("..");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = frame.strip_prefix(first) else {
        return false;
    };
    for part in parts {
        if part.is_empty() {
            rest = "";
            continue;
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn an_older_host_gets_nothing_that_it_does_not_know() {
    play(include_str!("conversations/older_host.txt"));
}

#[test]
fn a_newer_host_learns_what_the_agent_lacks() {
    play(include_str!("conversations/newer_host.txt"));
}
