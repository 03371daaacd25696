//! How a conversation begins anew on a wire that has no ends of its own.
//!
//! A virtio-serial port outlives whoever speaks on it: when one host program
//! stops in the middle of a frame and another takes over, the agent sees one
//! run of bytes. So the newcomer first writes a *reset*, which the agent
//! recognises wherever it stands, in the middle of a payload too:
//!
//! ```text
//! host                                              guest
//!  | ... half a frame | key (16 bytes) nonce (16 bytes) | Hello ...
//!  |--------------------------------------------------->|  forgets the old talk
//!  |            rest of old frames ... | nonce | Hello  |
//!  |<---------------------------------------------------|
//!  drops everything up to the nonce
//! ```
//!
//! The key is secret to the host and the agent and is drawn for each boot, the
//! nonce for each reset, so no payload can hold one by chance, and nobody else
//! can put one into it on purpose.

/// How many bytes a [`ResetKey`] and a [`Nonce`] have.
pub const RESET_PART: usize = 16;

/// What the agent answers a reset with.
pub type Nonce = [u8; RESET_PART];

/// What the agent recognises a reset by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetKey([u8; RESET_PART]);

impl ResetKey {
    /// Makes a key of random bytes. Its first byte stands nowhere else in it,
    /// so that no key can begin within another.
    pub fn new(mut random: [u8; RESET_PART]) -> Self {
        let first = random[0];
        for byte in random.iter_mut().skip(1) {
            if *byte == first {
                *byte = !first;
            }
        }
        Self(random)
    }

    /// The key as it stands in the boot file.
    pub const fn to_bytes(self) -> [u8; RESET_PART] {
        self.0
    }

    /// The bytes that a host writes to begin anew.
    pub fn reset(self, nonce: Nonce) -> [u8; 2 * RESET_PART] {
        let mut bytes = [0; 2 * RESET_PART];
        for (place, byte) in bytes.iter_mut().zip(self.0.iter().chain(&nonce)) {
            *place = *byte;
        }
        bytes
    }
}

/// The length of a mark, as a step.
const WHOLE: u8 = 16;

/// Finds a mark of [`RESET_PART`] bytes in bytes that come in pieces.
#[derive(Clone, Debug)]
pub struct Scanner {
    mark: [u8; RESET_PART],
    /// How far the mark must move for its next byte of this value to stand
    /// where its last one did.
    steps: [u8; 256],
    /// How many bytes of the mark the last pieces ended with.
    matched: usize,
    /// How many of those have been [released](Self::release).
    released: usize,
}

/// What stands at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned<'a> {
    /// Bytes that are not the mark; none if all of them were
    /// [released](Scanner::release) before.
    Other(&'a [u8]),
    /// The mark.
    Mark,
    /// Nothing, as far as the bytes go.
    Nothing,
}

impl Scanner {
    /// Looks for the mark, which may be any bytes: a [`Nonce`] is not made as a
    /// [`ResetKey`] is.
    pub fn new(mark: [u8; RESET_PART]) -> Self {
        let mut steps = [WHOLE; 256];
        for (byte, step) in mark.iter().zip((1..WHOLE).rev()) {
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

    /// Takes bytes off the front of `input`. Bytes that may yet turn out to be
    /// the beginning of the mark are held back until another byte decides, or
    /// until they are [released](Self::release).
    pub fn scan<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Scanned<'s> {
        if self.matched == 0 {
            let clear = self.first_beginning(input);
            let (other, rest) = input.split_at_checked(clear).unwrap_or((input, &[]));
            if !other.is_empty() {
                *input = rest;
                return Scanned::Other(other);
            }
        }
        while let Some((byte, rest)) = input.split_first() {
            if self.mark.get(self.matched) != Some(byte) {
                return Scanned::Other(self.let_go());
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

    /// Where the mark begins in `input`, or may begin as far as the bytes go;
    /// else its length. Looks ahead, so that bytes come out in large pieces
    /// although some of them are the mark's first.
    ///
    /// It looks at one byte in sixteen where it can (Horspool's algorithm):
    /// every byte that a guest receives comes through here.
    fn first_beginning(&self, input: &[u8]) -> usize {
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

    /// Lets go of the held bytes up to where the mark may begin again: with the
    /// mark `aab`, the second byte of `aa` does when the next is an `a`.
    fn let_go(&mut self) -> &[u8] {
        let held = self.mark.get(..self.matched).unwrap_or_default();
        self.matched = (1..held.len())
            .rev()
            .find(|&count| held.get(..count).is_some_and(|start| held.ends_with(start)))
            .unwrap_or(0);
        let gone = held.len().saturating_sub(self.matched);
        let known = self.released.min(gone);
        self.released = self.released.saturating_sub(known);
        held.get(known..gone).unwrap_or_default()
    }

    /// How many bytes are held back.
    pub const fn held(&self) -> usize {
        self.matched.saturating_sub(self.released)
    }

    /// Hands out the bytes that are held back, for a reader whose peer waits
    /// for their effect. They may still turn out to be the beginning of the
    /// mark.
    pub fn release(&mut self) -> &[u8] {
        let held = self.released..self.matched;
        self.released = self.matched;
        self.mark.get(held).unwrap_or_default()
    }
}
