use rustix::{fd::OwnedFd, io::Errno, pipe::fcntl_setpipe_size};

use crate::ring::Ring;

/// One output of a process: the agent's end of the pipe, and the ring that
/// keeps what was read until the host has taken it.
///
/// A full ring stops the reading, so the process blocks when nobody reads.
pub(crate) struct Output {
    pipe: Option<OwnedFd>,
    /// The pipe may have bytes: an event came, and no read has said `EAGAIN`.
    ready: bool,
    /// The pipe was found full and has been made larger.
    enlarged: bool,
    ring: Ring,
    cut: bool,
}

/// How much of an output the agent keeps.
const RING_SIZE: usize = 512 * 1024;

/// What the kernel gives a new pipe.
const SMALL_PIPE: usize = 64 * 1024;

/// What a process gets that fills its pipe: fewer wake-ups for both sides.
const LARGE_PIPE: usize = 256 * 1024;

impl Output {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe: Some(pipe),
            ready: false,
            enlarged: false,
            ring: Ring::new(RING_SIZE),
            cut: false,
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    pub(crate) fn is_ready(&mut self) {
        self.ready = true;
    }

    /// Whether there will be no more bytes in the ring than there are.
    pub(crate) fn has_ended(&self) -> bool {
        self.pipe.is_none()
    }

    /// Whether the pipe may have bytes that the ring had no room for.
    pub(crate) fn has_unread(&self) -> bool {
        self.ready && self.pipe.is_some()
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Reads once from the pipe to the ring, if there is anything to read and
    /// room for it.
    pub(crate) fn collect(&mut self) {
        let Some(pipe) = &self.pipe else {
            return;
        };
        if !self.ready || self.ring.is_full() {
            return;
        }
        let outcome = match self.ring.free_space() {
            Ok(space) => rustix::io::read(pipe, space),
            // No memory for the ring: the output cannot be had.
            Err(error) => Err(error),
        };
        match outcome {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.ring.wrote(count);
                if count >= SMALL_PIPE && !self.enlarged {
                    self.enlarged = true;
                    // Some kernels permit less; then it stays as it is.
                    let _ = fcntl_setpipe_size(pipe, LARGE_PIPE);
                }
            }
            Err(Errno::AGAIN) => self.ready = false,
            Err(Errno::INTR) => {}
            Err(_) => self.cut(),
        }
    }

    /// The host has everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        self.ring.release(offset);
    }

    /// Nobody wants the output: what is kept is dropped.
    pub(crate) fn close(&mut self) {
        self.pipe = None;
        self.ring.release(u64::MAX);
    }

    /// Gives up waiting for the end of the output.
    pub(crate) fn cut(&mut self) {
        self.cut |= self.pipe.take().is_some();
    }
}
