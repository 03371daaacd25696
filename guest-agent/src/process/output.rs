use rustix::{fd::OwnedFd, io::Errno, pipe::fcntl_setpipe_size};
use vmcell_wire::{
    Kept,
    limits::{MAX_WINDOW, MIN_KEPT},
};

use crate::ring::Ring;

/// One output of a process: the agent's end of the pipe, and the ring that
/// keeps the last of what was read.
///
/// An output that is *held* never overwrites bytes that its owner has not
/// acknowledged: when the ring is full of them the reading stops, so the
/// process blocks when nobody reads. Any other overwrites its oldest bytes.
pub(crate) struct Output {
    pipe: Option<OwnedFd>,
    /// The pipe may have bytes: an event came, and no read has said `EAGAIN`.
    ready: bool,
    /// The pipe was found full and has been made larger.
    enlarged: bool,
    ring: Ring,
    /// Bytes from this offset on are held. None: no bytes are.
    held: Option<u64>,
    cut: bool,
}

/// How much of an output is kept if nobody says.
const DEFAULT_KEPT: u32 = 1024 * 1024;

/// The most that is kept.
const MAX_KEPT: u32 = MAX_WINDOW;

/// What the kernel gives a new pipe.
const SMALL_PIPE: usize = 64 * 1024;

/// What a process gets that fills its pipe: fewer wake-ups for both sides.
const LARGE_PIPE: usize = 256 * 1024;

/// More than the kernel ever has of a terminal's output: 4 KiB in its line
/// discipline and, written byte by byte, 16 KiB that wait for it.
const IN_A_TERMINAL: usize = 32 * 1024;

impl Output {
    /// An output that overwrites its oldest bytes.
    pub(crate) fn new(pipe: OwnedFd, keep: u32) -> Self {
        Self {
            pipe: Some(pipe),
            ..Self::to_come(keep)
        }
    }

    /// The same, before there is anybody to write.
    pub(crate) fn to_come(keep: u32) -> Self {
        Self {
            pipe: None,
            ready: false,
            enlarged: false,
            ring: Ring::new(ring_size(keep)),
            held: None,
            cut: false,
        }
    }

    /// Goes on with another pipe.
    pub(crate) fn go_on(&mut self, pipe: OwnedFd) {
        self.pipe = Some(pipe);
        self.ready = false;
        self.enlarged = false;
        self.cut = false;
    }

    /// Keeps so much from now on.
    pub(crate) fn keep(&mut self, keep: u32) -> Result<(), Errno> {
        self.ring.resize(ring_size(keep))
    }

    /// An output that never has a byte.
    pub(crate) fn ended() -> Self {
        Self {
            pipe: None,
            ready: false,
            enlarged: false,
            ring: Ring::new(0),
            held: None,
            cut: false,
        }
    }

    /// Holds what comes from `offset` on, for an owner with this window.
    ///
    /// An owner acknowledges when it has consumed half a window, so a ring of
    /// less could be full of bytes that the owner has, and both would wait. A
    /// whole window keeps the link busy too. Windows are never larger than the
    /// largest ring.
    pub(crate) fn hold(&mut self, offset: u64, window: u32) {
        self.held = Some(offset);
        self.ring.may_grow_to(size(window.min(MAX_KEPT)));
    }

    /// The same for one more reader. What another has acknowledged stays so.
    pub(crate) fn hold_too(&mut self, offset: u64, window: u32) {
        self.hold(offset.max(self.held.unwrap_or(0)), window);
    }

    /// Nothing more will be written. Makes room for what waits in the kernel.
    pub(crate) fn make_room_for_the_rest(&mut self) {
        if self.held.is_some() {
            self.ring.may_grow_by(IN_A_TERMINAL);
        }
    }

    /// The owner has everything before `offset`.
    pub(crate) fn acknowledge(&mut self, offset: u64) {
        if let Some(held) = &mut self.held {
            *held = offset.max(*held);
        }
    }

    /// Whether somebody is waited for.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether it has bytes that somebody is waited for to read.
    pub(crate) fn holds_something(&self) -> bool {
        self.held.is_some_and(|held| held < self.ring.end())
    }

    /// Nobody is waited for any more.
    pub(crate) fn stop_holding(&mut self) {
        self.held = None;
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(crate) fn ring_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }

    pub(crate) fn kept(&self) -> Kept {
        Kept {
            start: self.ring.start(),
            end: self.ring.end(),
        }
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

    /// Whether reading may bring something.
    pub(crate) fn can_read(&self) -> bool {
        self.has_unread() && self.ring.has_room(self.held_from())
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Reads once from the pipe to the ring, if there is anything to read and
    /// room for it. Answers whether there is something new.
    pub(crate) fn collect(&mut self) -> bool {
        if !self.can_read() {
            return false;
        }
        let held = self.held_from();
        let Some(pipe) = &self.pipe else {
            return false;
        };
        let outcome = match self.ring.room(held) {
            Ok(room) => rustix::io::read(pipe, room),
            // No memory for the ring: the output cannot be had.
            Err(error) => Err(error),
        };
        match outcome {
            // The latter is how a terminal says that nobody has it open: pty(7).
            Ok(0) | Err(Errno::IO) => self.pipe = None,
            Ok(count) => {
                self.ring.wrote(count);
                if count >= SMALL_PIPE && !self.enlarged {
                    self.enlarged = true;
                    // Some kernels permit less; then it stays as it is.
                    let _ = fcntl_setpipe_size(pipe, LARGE_PIPE);
                }
            }
            Err(Errno::AGAIN) => {
                self.ready = false;
                return false;
            }
            Err(Errno::INTR) => return false,
            Err(_) => self.cut(),
        }
        true
    }

    /// Nobody wants the output: what is kept is dropped.
    pub(crate) fn close(&mut self) {
        self.pipe = None;
        self.ring.clear();
    }

    /// Drops what is kept.
    pub(crate) fn clear(&mut self) {
        self.ring.clear();
    }

    /// Gives up waiting for the end of the output.
    pub(crate) fn cut(&mut self) {
        self.cut |= self.pipe.take().is_some();
    }

    /// Gives back memory that an ended output does not need.
    pub(crate) fn finish(&mut self) {
        if self.has_ended() {
            self.ring.shrink_to_fit();
        }
    }

    fn held_from(&self) -> u64 {
        self.held.unwrap_or(self.ring.end())
    }
}

/// What is kept of an output of which `keep` is wanted.
fn ring_size(keep: u32) -> usize {
    size(match keep {
        0 => DEFAULT_KEPT,
        keep => keep.clamp(MIN_KEPT, MAX_KEPT),
    })
}

fn size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
