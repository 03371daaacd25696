use alloc::vec::Vec;

use vmcell_wire::reset::{Nonce, RESET_PART, Scanned, Scanner};

/// Finds resets in the input of a medium that outlives a session: see
/// [`vmcell_wire::reset`].
pub(super) struct ResetDetector {
    scanner: Scanner,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Bytes belong to the session.
    Forwarding,
    /// The session ended with an error; bytes are dropped until a reset.
    Discarding,
    /// The key of a reset and this many bytes of its nonce have arrived.
    Nonce { bytes: Nonce, arrived: usize },
}

/// The next part of the input.
pub(super) enum Part<'a> {
    /// Bytes for the session; may be empty.
    Payload(&'a [u8]),
    /// A reset.
    Reset(Nonce),
    /// The input is used up.
    Nothing,
}

impl ResetDetector {
    pub(super) fn new(key: [u8; RESET_PART]) -> Self {
        Self {
            scanner: Scanner::new(key),
            state: State::Forwarding,
        }
    }

    /// Replaces the key. Returns the bytes that were held back as the possible
    /// start of a reset with the old one: they and what follows them are to be
    /// passed to [`next_part`](Self::next_part) again.
    ///
    /// A reset whose key has arrived is completed.
    pub(super) fn change_key(&mut self, key: [u8; RESET_PART]) -> Vec<u8> {
        let held = self.scanner.release().to_vec();
        self.scanner = Scanner::new(key);
        held
    }

    /// Drops all bytes until the next reset.
    pub(super) fn discard_until_reset(&mut self) {
        self.state = State::Discarding;
    }

    /// Takes the next part off the front of `input`.
    pub(super) fn next_part<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Part<'s> {
        if let State::Nonce { bytes, arrived } = &mut self.state {
            while let Some(place) = bytes.get_mut(*arrived) {
                let Some((byte, rest)) = input.split_first() else {
                    return Part::Nothing;
                };
                *place = *byte;
                *arrived = arrived.saturating_add(1);
                *input = rest;
            }
            let nonce = *bytes;
            self.state = State::Forwarding;
            return Part::Reset(nonce);
        }
        match (self.scanner.scan(input), self.state) {
            (Scanned::Nothing, _) => Part::Nothing,
            (Scanned::Mark, _) => {
                self.state = State::Nonce {
                    bytes: [0; RESET_PART],
                    arrived: 0,
                };
                Part::Payload(&[])
            }
            (Scanned::Other(_), State::Discarding) => Part::Payload(&[]),
            (Scanned::Other(bytes), _) => Part::Payload(bytes),
        }
    }

    /// Returns the bytes that were held back as the possible start of a reset,
    /// if they complete a frame that lacks `missing` bytes.
    pub(super) fn release(&mut self, missing: usize) -> Option<&[u8]> {
        let forwarding = matches!(self.state, State::Forwarding);
        let completes = missing > 0 && missing <= self.scanner.held();
        (forwarding && completes).then(|| self.scanner.release())
    }
}
