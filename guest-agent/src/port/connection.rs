use alloc::vec::Vec;
use core::time::Duration;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        SendFlags, Shutdown, send, shutdown,
        sockopt::{set_socket_linger, set_tcp_nodelay, socket_error},
    },
};

use super::dial::{Dial, DialState};
use crate::event::Readiness;

/// A TCP connection to a program of the guest.
pub(crate) struct Connection {
    socket: OwnedFd,
    /// The attempt to connect; `None` once it succeeded or failed.
    dial: Option<Dial>,
    was_connected: bool,
    /// The first error of the socket.
    failure: Option<Errno>,
    /// Whether the socket may have bytes: an event came, and no call has
    /// returned `EAGAIN` since.
    readable: bool,
    /// Whether the program has shut down its writing side: then a short read is
    /// not the last one.
    hung_up: bool,
    /// Whether there is nothing more to read.
    read_all: bool,
    /// Whether the program ended its output in an orderly way.
    ended: bool,
    writable: bool,
    /// Input for the program; the bytes from `written` on are not sent yet.
    queued: Vec<u8>,
    written: usize,
    input: Input,
    /// How many bytes of input were sent or dropped and not yet reported by
    /// [`take_consumed`](Self::take_consumed).
    consumed: usize,
}

/// The state of the input from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// Nothing will follow what is queued.
    Ending,
    /// The writing side of the socket is shut down.
    Ended,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// The attempt to connect is in progress.
    Dialling,
    /// Connected.
    Open,
    /// Both sides have ended their output.
    Over,
    /// It could not be made, or it broke and there is nothing more to read.
    Failed(Errno),
}

impl Connection {
    /// Begins to connect to a port.
    pub(super) fn dial(port: u16) -> Result<Self, Errno> {
        let (dial, socket) = Dial::begin(port)?;
        Ok(Self {
            dial: Some(dial),
            was_connected: false,
            ..Self::connected(socket)
        })
    }

    /// Takes a socket that is connected.
    pub(super) fn adopt(socket: OwnedFd) -> Self {
        // An error only costs speed.
        let _ = set_tcp_nodelay(&socket, true);
        Self::connected(socket)
    }

    fn connected(socket: OwnedFd) -> Self {
        Self {
            socket,
            dial: None,
            was_connected: true,
            failure: None,
            readable: false,
            hung_up: false,
            read_all: false,
            ended: false,
            writable: true,
            queued: Vec::new(),
            written: 0,
            input: Input::Open,
            consumed: 0,
        }
    }

    /// Advances the attempt to connect. Returns whether the socket was
    /// replaced.
    pub(super) fn advance(&mut self) -> bool {
        let mut is_new = false;
        while let Some(dial) = &mut self.dial {
            match dial.poll(&self.socket) {
                Ok(DialState::InProgress) => break,
                Ok(DialState::Connected) => {
                    self.dial = None;
                    self.was_connected = true;
                }
                Ok(DialState::Replaced(socket)) => {
                    self.socket = socket;
                    is_new = true;
                }
                Err(error) => self.give_up(error),
            }
        }
        is_new
    }

    /// Records that the connection cannot be made.
    pub(super) fn give_up(&mut self, error: Errno) {
        self.dial = None;
        self.read_all = true;
        self.fail(error);
    }

    /// Handles an epoll event. Returns whether there is anything to do.
    pub(super) fn on_ready(&mut self, ready: Readiness) -> bool {
        self.hung_up |= ready.has_hung_up();
        self.readable |= ready.can_read();
        self.writable |= ready.can_write();
        // Otherwise the next read returns the error.
        if self.read_all
            && ready.has_failed()
            && let Ok(Err(error)) = socket_error(&self.socket)
        {
            self.fail(error);
            return true;
        }
        self.can_read() || (ready.can_write() && self.has_queued())
    }

    /// Returns the state of the connection.
    pub(crate) fn state(&self) -> ConnectionState {
        match self.failure {
            _ if self.dial.is_some() => ConnectionState::Dialling,
            Some(error) if self.read_all => ConnectionState::Failed(error),
            None if self.read_all && self.input == Input::Ended => ConnectionState::Over,
            _ => ConnectionState::Open,
        }
    }

    /// Returns whether the program has ended its output.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the connection was established at some time.
    pub(crate) fn was_connected(&self) -> bool {
        self.was_connected
    }

    /// Returns whether a read may return bytes.
    pub(crate) fn can_read(&self) -> bool {
        self.readable && !self.read_all && self.dial.is_none()
    }

    /// Reads the available bytes. Returns 0 if there are none now, or no more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.socket, &mut *buffer)) {
            Ok(0) => {
                self.read_all = true;
                // A connection that was reset returns end-of-file once its
                // error was reported. Only a broken pipe means that the program
                // ended its output before the error.
                self.ended = self.failure.is_none_or(|error| error == Errno::PIPE);
            }
            Ok(count) => {
                // Later bytes trigger another event.
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

    /// Queues bytes for the program.
    pub(crate) fn queue_input(&mut self, bytes: &[u8]) {
        if self.input != Input::Open || self.failure.is_some() {
            self.consumed = self.consumed.saturating_add(bytes.len());
            return;
        }
        if self.written >= self.queued.len().saturating_sub(self.written) {
            self.queued.drain(..self.written);
            self.written = 0;
        }
        if bytes.len() >= RESERVE_THRESHOLD && self.queued.is_empty() {
            self.queued.reserve(RESERVED_CAPACITY);
        }
        self.queued.extend_from_slice(bytes);
    }

    /// Ends the input after what is queued.
    pub(crate) fn end_input(&mut self) {
        if self.input == Input::Open {
            self.input = Input::Ending;
        }
    }

    /// Sends the queued input, as far as the socket accepts it.
    pub(crate) fn flush(&mut self) {
        if self.dial.is_some() {
            return;
        }
        while self.writable && self.has_queued() {
            let rest = self.queued.get(self.written..).unwrap_or_default();
            match send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.written = self.written.saturating_add(count);
                    self.consumed = self.consumed.saturating_add(count);
                }
                Err(Errno::AGAIN) => self.writable = false,
                Err(Errno::INTR) => {}
                // The program's earlier output can still be read.
                Err(error) => self.fail(error),
            }
        }
        if !self.has_queued() {
            self.written = 0;
            self.queued.clear();
            self.queued.shrink_to(RETAINED_CAPACITY);
            if self.input == Input::Ending {
                self.input = Input::Ended;
                // Fails only on a broken connection, which needs none.
                let _ = shutdown(&self.socket, Shutdown::Write);
            }
        }
    }

    /// Returns whether all input was sent and the writing side is shut down.
    pub(super) fn input_is_shut_down(&self) -> bool {
        self.input == Input::Ended
    }

    /// Returns how many bytes of input were sent or dropped since the last
    /// call.
    pub(crate) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    /// Resets the connection, so that the program gets an error: SO_LINGER in
    /// socket(7).
    pub(super) fn reset(self) {
        // On an error the connection is closed instead.
        let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    fn has_queued(&self) -> bool {
        self.written < self.queued.len()
    }

    fn fail(&mut self, error: Errno) {
        self.failure.get_or_insert(error);
        self.readable = true;
        let unwritten = self.queued.len().saturating_sub(self.written);
        self.consumed = self.consumed.saturating_add(unwritten);
        self.written = 0;
        self.queued = Vec::new();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The capacity that the input queue retains when it is empty.
const RETAINED_CAPACITY: usize = 4096;

/// A piece of this size suggests that more will follow in the same turn of the
/// link.
const RESERVE_THRESHOLD: usize = 2048;

/// As much as a link receives in one turn.
const RESERVED_CAPACITY: usize = 64 * 1024;
