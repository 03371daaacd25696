//! Restarts the protocol on a link that has no connections.
//!
//! A virtio-serial port outlives its users: when one host program stops in the
//! middle of a frame and another takes over, the agent sees one stream of bytes.
//! So the new program first writes a *reset*, which the agent recognises
//! anywhere, even in the middle of a payload:
//!
//! ```text
//! host                                              guest
//!  | ... half a frame | key (16 bytes) nonce (16 bytes) | Hello ...
//!  |--------------------------------------------------->|  drops the old session
//!  |            rest of old frames ... | nonce | Hello  |
//!  |<---------------------------------------------------|
//!  drops everything up to the nonce
//! ```
//!
//! The key is known only to the host and the agent, and is random for each boot
//! and for each [`Renew`](crate::Renew); the nonce is random for each reset. So no
//! payload contains one by chance, and nobody else can forge one.

/// The size of a [`ResetKey`] and of a [`Nonce`], in bytes.
pub const RESET_PART: usize = 16;

/// The random bytes with which the agent answers a reset.
pub type Nonce = [u8; RESET_PART];

/// The secret by which the agent recognises a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetKey([u8; RESET_PART]);

impl ResetKey {
    /// Creates a key from random bytes. Changes repetitions of its first byte, so
    /// that a key never overlaps with itself.
    pub fn new(mut random: [u8; RESET_PART]) -> Self {
        let first = random[0];
        for byte in random.iter_mut().skip(1) {
            if *byte == first {
                *byte = !first;
            }
        }
        Self(random)
    }

    /// Returns the bytes of the key, as in the boot file.
    pub const fn to_bytes(self) -> [u8; RESET_PART] {
        self.0
    }

    /// Returns the bytes of a reset: the key and the nonce.
    pub fn reset(self, nonce: Nonce) -> [u8; 2 * RESET_PART] {
        let mut bytes = [0; 2 * RESET_PART];
        for (place, byte) in bytes.iter_mut().zip(self.0.iter().chain(&nonce)) {
            *place = *byte;
        }
        bytes
    }
}

/// The length of a mark, as a value of [`Scanner::steps`].
const MARK_LENGTH: u8 = 16;

/// Finds a mark of [`RESET_PART`] bytes in a stream that arrives in pieces.
#[derive(Clone, Debug)]
pub struct Scanner {
    mark: [u8; RESET_PART],
    /// Horspool's shift table: by the last byte of the window, how far the window
    /// moves on.
    steps: [u8; 256],
    /// How many bytes of the mark are matched at the end of the input so far.
    matched: usize,
    /// How many of those were [released](Self::release).
    released: usize,
}

/// What a [`Scanner`] found at the front of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned<'a> {
    /// Bytes that are not the mark. Empty if all of them were
    /// [released](Scanner::release) before.
    Other(&'a [u8]),
    /// The mark.
    Mark,
    /// The input is used up.
    Nothing,
}

impl Scanner {
    /// Creates a scanner for a mark, which may be any bytes: unlike a
    /// [`ResetKey`], a [`Nonce`] may overlap with itself.
    pub fn new(mark: [u8; RESET_PART]) -> Self {
        let mut steps = [MARK_LENGTH; 256];
        for (byte, step) in mark.iter().zip((1..MARK_LENGTH).rev()) {
            if let Some(place) = steps.get_mut(usize::from(*byte)) {
                *place = step;
            }
        }
        Self {
            mark,
            steps,
            matched: 0,
            released: 0,
        }
    }

    /// Takes bytes off the front of `input`. Holds back bytes that may be the
    /// beginning of the mark, until a later byte decides or until they are
    /// [released](Self::release).
    pub fn scan<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Scanned<'s> {
        if self.matched == 0 {
            let clear = self.find_start(input);
            let (other, rest) = input.split_at_checked(clear).unwrap_or((input, &[]));
            if !other.is_empty() {
                *input = rest;
                return Scanned::Other(other);
            }
        }
        while let Some((byte, rest)) = input.split_first() {
            if self.mark.get(self.matched) != Some(byte) {
                return Scanned::Other(self.reject_match());
            }
            *input = rest;
            self.matched = self.matched.saturating_add(1);
            if self.matched == RESET_PART {
                self.matched = 0;
                self.released = 0;
                return Scanned::Mark;
            }
        }
        Scanned::Nothing
    }

    /// Returns the offset at which the mark begins in `input`, or at which a
    /// prefix of it ends the input; else the length of `input`. Looks ahead, so
    /// that data is returned in large pieces even if it contains the mark's first
    /// byte.
    ///
    /// It examines as few as one byte in sixteen (Horspool's algorithm), because
    /// it processes every byte that a guest receives.
    fn find_start(&self, input: &[u8]) -> usize {
        let mut at = 0usize;
        let ahead = |at: usize| input.get(at..at.saturating_add(RESET_PART));
        while let Some(window) = ahead(at) {
            if window == self.mark {
                return at;
            }
            let last = window.last().copied().unwrap_or_default();
            let step = self.steps.get(usize::from(last)).copied();
            at = at.saturating_add(usize::from(step.unwrap_or(1)));
        }
        (at..input.len())
            .find(|&at| {
                input
                    .get(at..)
                    .is_some_and(|end| self.mark.starts_with(end))
            })
            .unwrap_or(input.len())
    }

    /// Returns the held bytes after a mismatch, up to where the mark may begin
    /// again: with the mark `aab` and the input `aaa`, at the second byte.
    fn reject_match(&mut self) -> &[u8] {
        let held = self.mark.get(..self.matched).unwrap_or_default();
        self.matched = (1..held.len())
            .rev()
            .find(|&count| held.get(..count).is_some_and(|start| held.ends_with(start)))
            .unwrap_or(0);
        let rejected = held.len().saturating_sub(self.matched);
        let released = self.released.min(rejected);
        self.released = self.released.saturating_sub(released);
        held.get(released..rejected).unwrap_or_default()
    }

    /// Returns how many bytes are held back.
    pub const fn held(&self) -> usize {
        self.matched.saturating_sub(self.released)
    }

    /// Returns the bytes that are held back, for a reader that cannot wait for
    /// more input. They may still turn out to be the beginning of the mark.
    pub fn release(&mut self) -> &[u8] {
        let held = self.released..self.matched;
        self.released = self.matched;
        self.mark.get(held).unwrap_or_default()
    }
}
