use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};

/// The standard input of a process: the agent's end of the pipe, and what did
/// not fit into it yet. The stream's window bounds how much that can be.
pub(crate) struct Input {
    pipe: OwnedFd,
    ready: bool,
    waiting: Vec<u8>,
    /// Nothing will follow what waits.
    ended: bool,
    /// How many bytes came, ever.
    taken: u64,
    /// How many bytes need no more room here, and nobody has heard of it.
    consumed: usize,
}

/// What became of an input after some writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The process may get more later.
    Open,
    /// All is written and ended, or the process has closed its end.
    Finished,
}

impl Input {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe,
            ready: true,
            waiting: Vec::new(),
            ended: false,
            taken: 0,
            consumed: 0,
        }
    }

    pub(crate) fn is_ready(&mut self) {
        self.ready = true;
    }

    /// Whether more may come.
    pub(crate) fn is_open(&self) -> bool {
        !self.ended
    }

    /// How many bytes came, ever.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// How many bytes wait for room in the pipe.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many bytes need no more room here since this was last asked.
    pub(crate) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    /// Takes bytes from the host.
    pub(crate) fn give(&mut self, bytes: &[u8]) -> Progress {
        self.taken = self
            .taken
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if !self.waiting.is_empty() {
            self.waiting.extend_from_slice(bytes);
            return self.flush();
        }
        let (written, progress) = self.write(bytes);
        self.consumed = self.consumed.saturating_add(written);
        if progress == Progress::Open {
            self.waiting
                .extend_from_slice(bytes.get(written..).unwrap_or_default());
        }
        progress
    }

    /// Writes what waits, as far as the pipe takes it.
    pub(crate) fn flush(&mut self) -> Progress {
        let waiting = core::mem::take(&mut self.waiting);
        let (written, progress) = self.write(&waiting);
        self.consumed = self.consumed.saturating_add(written);
        if progress == Progress::Finished {
            return progress;
        }
        self.waiting = waiting;
        self.waiting.drain(..written.min(self.waiting.len()));
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
        self.progress()
    }

    /// Nothing will follow.
    pub(crate) fn end(&mut self) -> Progress {
        self.ended = true;
        self.progress()
    }

    fn progress(&self) -> Progress {
        if self.ended && self.waiting.is_empty() {
            Progress::Finished
        } else {
            Progress::Open
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> (usize, Progress) {
        let mut written = 0usize;
        while self.ready && !bytes.is_empty() {
            match rustix::io::write(&self.pipe, bytes) {
                Ok(count) => {
                    written = written.saturating_add(count);
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(Errno::AGAIN) => self.ready = false,
                Err(Errno::INTR) => {}
                // The process does not read any more. That is its right.
                Err(_) => return (written, Progress::Finished),
            }
        }
        (written, Progress::Open)
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// How many bytes of standard input the host may send ahead.
pub(crate) const INPUT_WINDOW: u32 = 256 * 1024;
