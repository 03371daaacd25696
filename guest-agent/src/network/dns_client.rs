use alloc::vec::Vec;

use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{SendFlags, send},
};

use super::dns::{BadQuestion, Question};
use crate::{clock::Moment, event::Readiness};

/// A program that asks for names over TCP: RFC 7766. Each message has its length
/// before it.
pub(super) struct DnsClient {
    pub(super) id: u32,
    socket: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
    /// How many questions have no answer yet.
    unanswered: usize,
    readable: bool,
    writable: bool,
    state: State,
    /// When it is given up, if nothing happens.
    pub(super) deadline: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The program asks nothing more.
    Ended,
    Broken,
}

/// The longest question, in bytes. Its name has at most 255, and extensions are short.
const MAX_QUESTION: usize = 1024;

/// How many questions may be unanswered.
const MAX_UNANSWERED: usize = 16;

/// No question is read while so many bytes of answers are unsent.
const MAX_UNSENT: usize = 4096;

/// How long a connection may be idle.
const IDLE_TIMEOUT_MS: u64 = 10_000;

impl DnsClient {
    pub(super) fn new(id: u32, socket: OwnedFd) -> Self {
        Self {
            id,
            socket,
            input: Vec::new(),
            output: Vec::new(),
            unanswered: 0,
            readable: true,
            writable: true,
            state: State::Open,
            deadline: Moment::now().after_ms(IDLE_TIMEOUT_MS),
        }
    }

    pub(super) fn on_ready(&mut self, ready: Readiness) {
        self.readable |= ready.can_read();
        self.writable |= ready.can_write();
    }

    /// Returns the next question, if one has arrived.
    pub(super) fn next_question(&mut self) -> Option<Question> {
        while self.unanswered < MAX_UNANSWERED && self.output.len() < MAX_UNSENT {
            let Some(message) = self.take_message() else {
                if !self.read() {
                    return None;
                }
                continue;
            };
            match Question::parse(&message) {
                Ok(question) => {
                    self.unanswered = self.unanswered.saturating_add(1);
                    return Some(question);
                }
                Err(BadQuestion::Answered(answer)) => self.queue(&answer),
                Err(BadQuestion::Ignored) => {
                    self.state = State::Broken;
                    return None;
                }
            }
        }
        None
    }

    /// Sends the answer to a question.
    pub(super) fn answer(&mut self, answer: &[u8]) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.queue(answer);
    }

    /// Returns how many bytes are held.
    #[cfg(feature = "fuzzing")]
    pub(super) fn held(&self) -> usize {
        self.input.capacity().saturating_add(self.output.capacity())
    }

    /// Returns whether there is nothing more to do.
    pub(super) fn is_over(&self) -> bool {
        match self.state {
            State::Open => false,
            State::Ended => self.unanswered == 0 && self.output.is_empty(),
            State::Broken => true,
        }
    }

    /// Sends what is queued, as far as the socket accepts it.
    pub(super) fn flush(&mut self) {
        while self.writable && !self.output.is_empty() {
            match send(&self.socket, &self.output, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.output.drain(..count.min(self.output.len()));
                    self.deadline = Moment::now().after_ms(IDLE_TIMEOUT_MS);
                }
                Err(Errno::AGAIN) => self.writable = false,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.state = State::Broken;
                    return;
                }
            }
        }
    }

    fn queue(&mut self, answer: &[u8]) {
        let length = u16::try_from(answer.len()).unwrap_or(0);
        self.output.extend(length.to_be_bytes());
        self.output.extend_from_slice(answer);
        self.flush();
    }

    /// Takes a whole message off the input.
    fn take_message(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.input.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        if length > MAX_QUESTION {
            self.state = State::Broken;
            return None;
        }
        let message = Vec::from(rest.get(..length)?);
        self.input.drain(..length.saturating_add(2));
        Some(message)
    }

    /// Reads more. Returns whether there was something.
    fn read(&mut self) -> bool {
        if !self.readable || self.state != State::Open {
            return false;
        }
        let mut buffer = [0; MAX_QUESTION];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.socket, &mut buffer[..])) {
            Ok(0) => self.state = State::Ended,
            Ok(count) => {
                self.deadline = Moment::now().after_ms(IDLE_TIMEOUT_MS);
                let bytes = buffer.get(..count).unwrap_or_default();
                self.input.extend_from_slice(bytes);
                return true;
            }
            Err(Errno::AGAIN) => self.readable = false,
            Err(_) => self.state = State::Broken,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::super::dns::DnsAnswer;
    use super::*;

    const QUESTION: [u8; 21] = [
        0, 19, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1,
    ];

    fn client() -> (DnsClient, OwnedFd) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(family, kind, flags, None).unwrap();
        (DnsClient::new(1, ours), theirs)
    }

    /// Sends bytes to a client, and has it notice.
    fn send_to(client: &mut DnsClient, program: &OwnedFd, bytes: &[u8]) {
        assert_eq!(rustix::io::write(program, bytes), Ok(bytes.len()));
        client.readable = true;
    }

    #[test]
    fn questions_come_in_pieces_of_any_size() {
        let (mut client, program) = client();
        let several = QUESTION.repeat(3);
        let mut count = 0;
        for byte in &several {
            send_to(&mut client, &program, &[*byte]);
            while let Some(question) = client.next_question() {
                assert_eq!(question.name.as_deref(), Some("a"));
                client.answer(&question.answer(DnsAnswer::NoSuchName));
                count += 1;
            }
        }
        assert_eq!(count, 3);
        let mut answers = [0; 200];
        assert_eq!(rustix::io::read(&program, &mut answers), Ok(several.len()));
        drop(program);
        client.readable = true;
        assert!(client.next_question().is_none() && client.is_over());
    }

    #[test]
    fn so_many_questions_wait_and_more_are_not_read() {
        let (mut client, program) = client();
        send_to(&mut client, &program, &QUESTION.repeat(20));
        let questions: Vec<_> = core::iter::from_fn(|| client.next_question()).collect();
        assert_eq!(questions.len(), MAX_UNANSWERED);
        client.answer(b"answer");
        assert!(client.next_question().is_some());
        assert!(client.next_question().is_none() && !client.is_over());
    }

    #[test]
    fn who_sends_something_else_is_given_up() {
        for bytes in [&[255, 255, 1, 2][..], &[0, 2, 1, 2], &[0, 0]] {
            let (mut client, program) = client();
            send_to(&mut client, &program, bytes);
            assert!(
                client.next_question().is_none() && client.is_over(),
                "{bytes:?}"
            );
        }
    }
}
