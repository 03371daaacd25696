use alloc::vec::Vec;
use core::time::Duration;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        SendFlags, Shutdown, send, shutdown,
        sockopt::{set_socket_linger, socket_error},
    },
};

use super::dial::{Dial, Dialled};
use crate::event::Ready;

/// A connection to a program of the guest.
pub(crate) struct Connection {
    socket: OwnedFd,
    /// None: it is made, or was refused.
    dial: Option<Dial>,
    made: bool,
    /// Why it is of no more use to the program.
    failure: Option<Errno>,
    /// The socket may have bytes: an event came, and no call has said otherwise.
    readable: bool,
    /// The program has hung up: a read that brings little is not the last one.
    hung_up: bool,
    /// There is nothing more to read.
    read_all: bool,
    /// The program has said so.
    ended: bool,
    writable: bool,
    /// What the program has not been given yet, from `written` on.
    waiting: Vec<u8>,
    written: usize,
    input: Input,
    /// How many bytes need no more room here, and nobody has heard of it.
    consumed: usize,
}

/// What there is to come from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// Nothing will follow what waits.
    Ending,
    /// The program knows that there is no more.
    Ended,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is not known whether somebody listens.
    Dialling,
    /// It is made.
    Open,
    /// Both sides have said all.
    Over,
    /// It was not made, or broke, and there is nothing more to be read.
    Failed(Errno),
}

impl Connection {
    /// Begins to connect to a port.
    pub(super) fn dial(port: u16) -> Result<Self, Errno> {
        let (dial, socket) = Dial::begin(port)?;
        Ok(Self {
            socket,
            dial: Some(dial),
            made: false,
            failure: None,
            readable: false,
            hung_up: false,
            read_all: false,
            ended: false,
            writable: true,
            waiting: Vec::new(),
            written: 0,
            input: Input::Open,
            consumed: 0,
        })
    }

    /// Moves an attempt on. Answers whether there is another socket now.
    pub(super) fn advance(&mut self) -> bool {
        let mut is_new = false;
        while let Some(dial) = &mut self.dial {
            match dial.ask(&self.socket) {
                Ok(Dialled::Waiting) => break,
                Ok(Dialled::Taken) => {
                    self.dial = None;
                    self.made = true;
                }
                Ok(Dialled::Instead(socket)) => {
                    self.socket = socket;
                    is_new = true;
                }
                Err(error) => self.give_up(error),
            }
        }
        is_new
    }

    /// It cannot be made.
    pub(super) fn give_up(&mut self, error: Errno) {
        self.dial = None;
        self.read_all = true;
        self.fail(error);
    }

    /// The kernel says that something has changed. Answers whether there is
    /// anything to do.
    pub(super) fn is_ready(&mut self, ready: Ready) -> bool {
        self.hung_up |= ready.has_hung_up();
        self.readable |= ready.can_read();
        self.writable |= ready.can_write();
        // A read tells of an error as well, if there will be one.
        if self.read_all
            && ready.has_failed()
            && let Ok(Err(error)) = socket_error(&self.socket)
        {
            self.fail(error);
            return true;
        }
        self.can_read() || (ready.can_write() && self.has_waiting())
    }

    /// How far it is.
    pub(crate) fn progress(&self) -> Progress {
        match self.failure {
            _ if self.dial.is_some() => Progress::Dialling,
            Some(error) if self.read_all => Progress::Failed(error),
            None if self.read_all && self.input == Input::Ended => Progress::Over,
            _ => Progress::Open,
        }
    }

    /// Whether the program has said all.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether somebody has taken it, whatever became of it then.
    pub(crate) fn was_made(&self) -> bool {
        self.made
    }

    /// Whether a read may bring something.
    pub(crate) fn can_read(&self) -> bool {
        self.readable && !self.read_all && self.dial.is_none()
    }

    /// Reads what is there. Nothing: there is none now, or no more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.socket, &mut *buffer)) {
            Ok(0) => {
                self.read_all = true;
                // A connection that was reset looks like one that has ended once
                // the error has been told. Only if the end came first it is a
                // broken pipe.
                self.ended = self.failure.is_none_or(|error| error == Errno::PIPE);
            }
            Ok(count) => {
                // What comes later is another event.
                self.readable = count == buffer.len() || self.hung_up;
                return count;
            }
            Err(Errno::AGAIN) => self.readable = false,
            Err(error) => {
                self.fail(error);
                self.read_all = true;
            }
        }
        0
    }

    /// Takes bytes for the program.
    pub(crate) fn give(&mut self, bytes: &[u8]) {
        if self.input != Input::Open || self.failure.is_some() {
            self.consumed = self.consumed.saturating_add(bytes.len());
            return;
        }
        if self.written >= self.waiting.len().saturating_sub(self.written) {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        if bytes.len() >= WORTH_RESERVING && self.waiting.is_empty() {
            self.waiting.reserve(RESERVED);
        }
        self.waiting.extend_from_slice(bytes);
    }

    /// Nothing will follow.
    pub(crate) fn end_input(&mut self) {
        if self.input == Input::Open {
            self.input = Input::Ending;
        }
    }

    /// Gives the program what waits, as far as it takes it.
    pub(crate) fn flush(&mut self) {
        if self.dial.is_some() {
            return;
        }
        while self.writable && self.has_waiting() {
            let rest = self.waiting.get(self.written..).unwrap_or_default();
            match send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.written = self.written.saturating_add(count);
                    self.consumed = self.consumed.saturating_add(count);
                }
                Err(Errno::AGAIN) => self.writable = false,
                Err(Errno::INTR) => {}
                // What the program had said before can still be read.
                Err(error) => self.fail(error),
            }
        }
        if !self.has_waiting() {
            self.written = 0;
            self.waiting.clear();
            self.waiting.shrink_to(RETAINED);
            if self.input == Input::Ending {
                self.input = Input::Ended;
                // One that is broken needs none.
                let _ = shutdown(&self.socket, Shutdown::Write);
            }
        }
    }

    /// Whether the program knows that nothing more will come.
    pub(super) fn was_told_all(&self) -> bool {
        self.input == Input::Ended
    }

    /// How many bytes need no more room here since this was last asked.
    pub(crate) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    /// Breaks it, so that the program notices: SO_LINGER in socket(7).
    pub(super) fn reset(self) {
        // If that cannot be, it is closed.
        let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    fn has_waiting(&self) -> bool {
        self.written < self.waiting.len()
    }

    fn fail(&mut self, error: Errno) {
        self.failure.get_or_insert(error);
        self.readable = true;
        let unwritten = self.waiting.len().saturating_sub(self.written);
        self.consumed = self.consumed.saturating_add(unwritten);
        self.written = 0;
        self.waiting = Vec::new();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What is kept of the memory for what waits.
const RETAINED: usize = 4096;

/// After so many bytes at once, more will follow in the same turn of the link.
const WORTH_RESERVING: usize = 2048;

/// As much as a link brings in one turn.
const RESERVED: usize = 64 * 1024;
