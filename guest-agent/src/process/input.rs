use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};

/// The standard input of a process: the agent's end of the pipe, and the bytes
/// that did not fit into it yet. The stream's window bounds how many these are.
pub(crate) struct Input {
    pipe: OwnedFd,
    ready: bool,
    queued: Vec<u8>,
    /// Nothing will follow the queued bytes.
    ended: bool,
    /// How many bytes were received in total.
    received: u64,
    /// How many bytes were written to the pipe and not yet reported by
    /// [`take_consumed`](Self::take_consumed).
    consumed: usize,
}

/// The state of an input after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputState {
    /// More can be written.
    Open,
    /// Everything is written and the input ended, or the process closed its
    /// end.
    Finished,
}

impl Input {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe,
            ready: true,
            queued: Vec::new(),
            ended: false,
            received: 0,
            consumed: 0,
        }
    }

    pub(crate) fn on_ready(&mut self) {
        self.ready = true;
    }

    /// Returns whether more input may follow.
    pub(crate) fn is_open(&self) -> bool {
        !self.ended
    }

    /// How many bytes were received in total.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns how many bytes wait for room in the pipe.
    pub(crate) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Returns how many bytes were written to the pipe since the last call.
    pub(crate) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    /// Writes bytes from the host to the pipe and queues the rest.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> InputState {
        self.received = self
            .received
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if !self.queued.is_empty() {
            self.queued.extend_from_slice(bytes);
            return self.flush();
        }
        let (written, state) = self.write(bytes);
        self.consumed = self.consumed.saturating_add(written);
        if state == InputState::Open {
            self.queued
                .extend_from_slice(bytes.get(written..).unwrap_or_default());
        }
        state
    }

    /// Writes the queued bytes, as far as the pipe accepts them.
    pub(crate) fn flush(&mut self) -> InputState {
        let queued = core::mem::take(&mut self.queued);
        let (written, state) = self.write(&queued);
        self.consumed = self.consumed.saturating_add(written);
        if state == InputState::Finished {
            return state;
        }
        self.queued = queued;
        self.queued.drain(..written.min(self.queued.len()));
        if self.queued.is_empty() {
            self.queued = Vec::new();
        }
        self.state()
    }

    /// Ends the input after the queued bytes.
    pub(crate) fn end(&mut self) -> InputState {
        self.ended = true;
        self.state()
    }

    fn state(&self) -> InputState {
        if self.ended && self.queued.is_empty() {
            InputState::Finished
        } else {
            InputState::Open
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> (usize, InputState) {
        let mut written = 0usize;
        while self.ready && !bytes.is_empty() {
            match rustix::io::write(&self.pipe, bytes) {
                Ok(count) => {
                    written = written.saturating_add(count);
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(Errno::AGAIN) => self.ready = false,
                Err(Errno::INTR) => {}
                // The process closed its end, which is no error.
                Err(_) => return (written, InputState::Finished),
            }
        }
        (written, InputState::Open)
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// How many bytes of standard input the host may send ahead.
pub(crate) const INPUT_WINDOW: u32 = 256 * 1024;
