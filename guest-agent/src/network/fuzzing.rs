//! What the fuzz target `dns` reaches.

use alloc::{string::String, vec, vec::Vec};
use core::{
    iter,
    net::{Ipv4Addr, Ipv6Addr},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};

use super::{
    dns::{BadQuestion, DnsAnswer, Question},
    dns_client::DnsClient,
};
use crate::event::Readiness;

/// What became of a message to the agent's server of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is no question, and gets no answer.
    Ignored,
    /// It is a question that gets this error.
    Refused(Vec<u8>),
    /// It is a question for a name.
    Question {
        /// The name; `None` if no host can have it.
        name: Option<String>,
        /// The answer if there is a host with this name.
        found: Vec<u8>,
        /// The answer if there is none.
        not_found: Vec<u8>,
    },
}

/// What a program gets that asks over TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpAnswers {
    /// All that it was sent.
    pub bytes: Vec<u8>,
    /// Whether the agent does not read any more.
    pub is_over: bool,
    /// The most bytes that were held of what was not answered yet.
    pub most_held: usize,
}

/// Asks the agent's server of names.
pub fn ask(message: &[u8], v4: Ipv4Addr, v6: Ipv6Addr) -> Asked {
    match Question::parse(message) {
        Err(BadQuestion::Ignored) => Asked::Ignored,
        Err(BadQuestion::Answered(answer)) => Asked::Refused(answer),
        Ok(question) => Asked::Question {
            found: question.answer(DnsAnswer::Host(v4, v6)),
            not_found: question.answer(DnsAnswer::NoSuchName),
            name: question.name,
        },
    }
}

/// Sends these pieces over one connection. There is no host with any name.
///
/// # Errors
/// If there is no socket, or the pieces are more than a socket holds.
pub fn ask_over_tcp<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<TcpAnswers, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, program) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let mut client = DnsClient::new(1, ours);
    let mut answers = TcpAnswers {
        bytes: Vec::new(),
        is_over: false,
        most_held: 0,
    };
    let last = iter::once(None);
    for piece in pieces.into_iter().map(Some).chain(last) {
        match piece {
            Some([]) => continue,
            Some(piece) => drop(rustix::io::write(&program, piece)?),
            None => rustix::net::shutdown(&program, rustix::net::Shutdown::Write)?,
        }
        // Twice, because answers that are read make room for more.
        for _ in 0..2 {
            if client.is_over() {
                break;
            }
            client.on_ready(Readiness::BOTH);
            while let Some(question) = client.next_question() {
                answers.most_held = answers.most_held.max(client.held());
                client.answer(&question.answer(DnsAnswer::NoSuchName));
            }
            client.flush();
            answers.most_held = answers.most_held.max(client.held());
            read_all(&program, &mut answers.bytes)?;
        }
        if client.is_over() {
            answers.is_over = true;
            break;
        }
    }
    Ok(answers)
}

fn read_all(program: &rustix::fd::OwnedFd, to: &mut Vec<u8>) -> Result<(), Errno> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match rustix::io::read(program, &mut buffer[..]) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(()),
            Ok(count) => to.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
