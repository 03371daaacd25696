use rustix::{fd::OwnedFd, io::Errno, pipe::fcntl_setpipe_size};
use vmcell_wire::{
    BufferedRange,
    limits::{MAX_WINDOW, MIN_OUTPUT_BUFFER},
};

use crate::ring::Ring;

/// One output of a process: the agent's end of the pipe, and the ring that
/// keeps the most recent bytes.
///
/// An output that is *held* never overwrites bytes that its owner has not
/// acknowledged: when the ring is full of them the agent stops reading, and the
/// process blocks. Any other output overwrites its oldest bytes.
pub(crate) struct Output {
    pipe: Option<OwnedFd>,
    /// Whether the pipe may have bytes: an event came, and no read has returned
    /// `EAGAIN` since.
    ready: bool,
    /// Whether the pipe was found full and was enlarged.
    enlarged: bool,
    ring: Ring,
    /// Bytes from this offset on are held; `None`: none are.
    held: Option<u64>,
    truncated: bool,
}

/// How much of an output is kept by default.
const DEFAULT_KEPT: u32 = 1024 * 1024;

/// The maximum that is kept.
const MAX_KEPT: u32 = MAX_WINDOW;

/// The size of a new pipe.
const SMALL_PIPE: usize = 64 * 1024;

/// The size of a pipe that was found full: fewer wake-ups for both sides.
const LARGE_PIPE: usize = 256 * 1024;

/// More than the kernel ever buffers of a terminal's output: 4 KiB in its line
/// discipline and, written byte by byte, 16 KiB that wait for it.
const MAX_TTY_BUFFERED: usize = 32 * 1024;

impl Output {
    /// Creates an output that overwrites its oldest bytes.
    pub(crate) fn new(pipe: OwnedFd, keep: u32) -> Self {
        Self {
            pipe: Some(pipe),
            ..Self::without_pipe(keep)
        }
    }

    /// Creates an output without a pipe yet.
    pub(crate) fn without_pipe(keep: u32) -> Self {
        Self {
            pipe: None,
            ready: false,
            enlarged: false,
            ring: Ring::new(ring_size(keep)),
            held: None,
            truncated: false,
        }
    }

    /// Continues the output with another pipe.
    pub(crate) fn set_pipe(&mut self, pipe: OwnedFd) {
        self.pipe = Some(pipe);
        self.ready = false;
        self.enlarged = false;
        self.truncated = false;
    }

    /// Changes how much is kept.
    pub(crate) fn set_kept_size(&mut self, keep: u32) -> Result<(), Errno> {
        self.ring.resize(ring_size(keep))
    }

    /// Creates an output that has ended without a byte.
    pub(crate) fn ended() -> Self {
        Self {
            pipe: None,
            ready: false,
            enlarged: false,
            ring: Ring::new(0),
            held: None,
            truncated: false,
        }
    }

    /// Holds the bytes from `offset` on for an owner with this window.
    ///
    /// An owner acknowledges when it has consumed half a window, so a smaller
    /// ring could be full of bytes that the owner has, and both sides would
    /// wait. A whole window also keeps the link busy. Windows are never larger
    /// than the largest ring.
    pub(crate) fn hold(&mut self, offset: u64, window: u32) {
        self.held = Some(offset);
        self.ring.may_grow_to(size(window.min(MAX_KEPT)));
    }

    /// Holds bytes for one more reader. Bytes that another reader has
    /// acknowledged are not held again.
    pub(crate) fn hold_for_another(&mut self, offset: u64, window: u32) {
        self.hold(offset.max(self.held.unwrap_or(0)), window);
    }

    /// Makes room for what the kernel still buffers after the last write.
    pub(crate) fn grow_for_buffered_output(&mut self) {
        if self.held.is_some() {
            self.ring.may_grow_by(MAX_TTY_BUFFERED);
        }
    }

    /// Releases the bytes before `offset`, which the owner has.
    pub(crate) fn acknowledge(&mut self, offset: u64) {
        if let Some(held) = &mut self.held {
            *held = offset.max(*held);
        }
    }

    /// Returns whether bytes are held for a reader.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns whether it has bytes that a reader has not acknowledged.
    pub(crate) fn has_held_bytes(&self) -> bool {
        self.held.is_some_and(|held| held < self.ring.end())
    }

    /// Stops holding bytes.
    pub(crate) fn stop_holding(&mut self) {
        self.held = None;
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(crate) fn ring_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }

    pub(crate) fn kept(&self) -> BufferedRange {
        BufferedRange {
            start: self.ring.start(),
            end: self.ring.end(),
        }
    }

    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    pub(crate) fn on_ready(&mut self) {
        self.ready = true;
    }

    /// Returns whether the ring will get no more bytes.
    pub(crate) fn has_ended(&self) -> bool {
        self.pipe.is_none()
    }

    /// Returns whether the pipe may have unread bytes.
    pub(crate) fn has_unread(&self) -> bool {
        self.ready && self.pipe.is_some()
    }

    /// Returns whether the pipe may have bytes and the ring has room.
    pub(crate) fn can_read(&self) -> bool {
        self.has_unread() && self.ring.has_room(self.held_from())
    }

    pub(crate) fn was_truncated(&self) -> bool {
        self.truncated
    }

    /// Reads once from the pipe into the ring, if there may be bytes and room
    /// for them. Returns whether there is anything new.
    pub(crate) fn read_pipe(&mut self) -> bool {
        if !self.can_read() {
            return false;
        }
        let held = self.held_from();
        let Some(pipe) = &self.pipe else {
            return false;
        };
        let outcome = match self.ring.room(held) {
            Ok(room) => rustix::io::read(pipe, room),
            // Without memory for the ring the output is cut off.
            Err(error) => Err(error),
        };
        match outcome {
            // A terminal that no process has open returns `EIO`: pty(7).
            Ok(0) | Err(Errno::IO) => self.pipe = None,
            Ok(count) => {
                self.ring.wrote(count);
                if count >= SMALL_PIPE && !self.enlarged {
                    self.enlarged = true;
                    // Some kernels permit less; then the size stays as it is.
                    let _ = fcntl_setpipe_size(pipe, LARGE_PIPE);
                }
            }
            Err(Errno::AGAIN) => {
                self.ready = false;
                return false;
            }
            Err(Errno::INTR) => return false,
            Err(_) => self.truncate(),
        }
        true
    }

    /// Closes the pipe and drops what is kept.
    pub(crate) fn close(&mut self) {
        self.pipe = None;
        self.ring.clear();
    }

    /// Drops what is kept.
    pub(crate) fn clear(&mut self) {
        self.ring.clear();
    }

    /// Closes the pipe without waiting for the end of the output.
    pub(crate) fn truncate(&mut self) {
        self.truncated |= self.pipe.take().is_some();
    }

    /// Frees memory that an ended output does not need.
    pub(crate) fn finish(&mut self) {
        if self.has_ended() {
            self.ring.shrink_to_fit();
        }
    }

    fn held_from(&self) -> u64 {
        self.held.unwrap_or(self.ring.end())
    }
}

/// Returns the size of the ring for a requested `keep`; 0 is the default.
fn ring_size(keep: u32) -> usize {
    size(match keep {
        0 => DEFAULT_KEPT,
        keep => keep.clamp(MIN_OUTPUT_BUFFER, MAX_KEPT),
    })
}

fn size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
