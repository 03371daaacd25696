use vmcell_wire::reset::{Nonce, RESET_PART, Scanned, Scanner};

/// Finds resets in what comes over a medium that outlives a conversation: see
/// [`vmcell_wire::reset`].
pub(super) struct Resets {
    scanner: Scanner,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Somebody speaks, or may begin to.
    Listening,
    /// What was said made no sense, and nothing does before a reset.
    Ignoring,
    /// The key of a reset has come, and so many bytes of its nonce.
    Nonce { bytes: Nonce, arrived: usize },
}

/// What stands at the front of some bytes.
pub(super) enum Part<'a> {
    /// Something for the conversation, or nothing.
    Said(&'a [u8]),
    /// A reset.
    Reset(Nonce),
    /// The bytes are used up.
    Nothing,
}

impl Resets {
    pub(super) fn new(key: [u8; RESET_PART]) -> Self {
        Self {
            scanner: Scanner::new(key),
            state: State::Listening,
        }
    }

    /// The conversation is over without a reset.
    pub(super) fn ignore_until_reset(&mut self) {
        self.state = State::Ignoring;
    }

    /// Takes bytes off the front of `input`.
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
            self.state = State::Listening;
            return Part::Reset(nonce);
        }
        match (self.scanner.scan(input), self.state) {
            (Scanned::Nothing, _) => Part::Nothing,
            (Scanned::Mark, _) => {
                self.state = State::Nonce {
                    bytes: [0; RESET_PART],
                    arrived: 0,
                };
                Part::Said(&[])
            }
            (Scanned::Other(_), State::Ignoring) => Part::Said(&[]),
            (Scanned::Other(bytes), _) => Part::Said(bytes),
        }
    }

    /// Hands out the bytes that are held back because a reset may begin with
    /// them, if a frame that lacks so many bytes ends with them.
    pub(super) fn release(&mut self, missing: usize) -> Option<&[u8]> {
        let listening = matches!(self.state, State::Listening);
        let completes = missing > 0 && missing <= self.scanner.held();
        (listening && completes).then(|| self.scanner.release())
    }
}
