//! Hides secrets in what a terminal prints.

#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use zeroize::Zeroizing;

/// Passes bytes on, with every secret in them replaced.
///
/// The end of the bytes may be the beginning of a secret. It is held back until
/// the next bytes decide, or until [`Redactor::flush`].
///
/// Secrets do not stay in memory longer than the redactor.
pub(crate) struct Redactor {
    /// The newest comes last. None is empty.
    secrets: Vec<Secret>,
    /// Which bytes a secret begins with.
    firsts: [bool; 256],
    held: Zeroizing<Vec<u8>>,
}

struct Secret {
    bytes: Zeroizing<Vec<u8>>,
    /// So short that it is hidden only until the next input: every later `a`
    /// would vanish otherwise.
    brief: bool,
}

/// What is shown in place of a secret. It does not tell how long that was.
const STARS: &[u8] = b"********";

/// The oldest secrets are forgotten when there are more.
const MAX_SECRETS: usize = 16;

/// Of longer secrets only the beginning is hidden. A terminal takes no longer
/// lines.
const MAX_LENGTH: usize = 4096;

/// Shorter ones are hidden only until the next input.
const MIN_LASTING: usize = 4;

impl Redactor {
    pub(crate) fn new() -> Self {
        Self {
            secrets: Vec::new(),
            firsts: [false; 256],
            held: Zeroizing::default(),
        }
    }

    /// Hides a secret from now on. The end of a line at its end is not part of
    /// it.
    pub(crate) fn hide(&mut self, secret: &[u8]) {
        let end = secret
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last + 1);
        let secret = &secret[..end.min(MAX_LENGTH)];
        if secret.is_empty() {
            return;
        }
        self.secrets.retain(|known| *known.bytes != secret);
        if self.secrets.len() == MAX_SECRETS {
            self.secrets.remove(0);
        }
        self.secrets.push(Secret {
            bytes: Zeroizing::new(secret.to_vec()),
            brief: secret.len() < MIN_LASTING,
        });
        self.note_firsts();
    }

    /// Something else is typed: very short secrets are not hidden any more.
    pub(crate) fn next_input(&mut self) {
        if self.secrets.iter().any(|secret| secret.brief) {
            self.secrets.retain(|secret| !secret.brief);
            self.note_firsts();
        }
    }

    /// Whether something is held back.
    pub(crate) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes bytes and gives those that may be shown. Nothing is copied where
    /// nothing is hidden.
    pub(crate) fn feed(&mut self, bytes: Bytes) -> Bytes {
        if self.held.is_empty() {
            return self.pass(bytes, Then::More);
        }
        let mut whole = std::mem::take(&mut *self.held);
        whole.extend_from_slice(&bytes);
        self.pass(whole.into(), Then::More)
    }

    /// Gives what is held back: nothing more came for a while, so it is no
    /// secret.
    pub(crate) fn flush(&mut self) -> Bytes {
        let held = std::mem::take(&mut *self.held);
        self.pass(held.into(), Then::Nothing)
    }

    fn pass(&mut self, bytes: Bytes, then: Then) -> Bytes {
        if self.secrets.is_empty() {
            return bytes;
        }
        let mut hidden = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = self.candidate(&bytes[at..]) {
            at += found;
            let rest = &bytes[at..];
            if then == Then::More && self.may_begin(rest) {
                self.held = Zeroizing::new(rest.to_vec());
                break;
            }
            match self.longest(rest) {
                Some(length) => {
                    hidden.extend_from_slice(&bytes[copied..at]);
                    hidden.extend_from_slice(STARS);
                    at += length;
                    copied = at;
                }
                None => at += 1,
            }
        }
        let end = bytes.len() - self.held.len();
        if copied == 0 {
            return bytes.slice(..end);
        }
        hidden.extend_from_slice(&bytes[copied..end]);
        hidden.into()
    }

    fn note_firsts(&mut self) {
        self.firsts = [false; 256];
        for first in self
            .secrets
            .iter()
            .filter_map(|secret| secret.bytes.first())
        {
            self.firsts[usize::from(*first)] = true;
        }
    }

    /// Where the first byte of a secret is.
    fn candidate(&self, bytes: &[u8]) -> Option<usize> {
        bytes
            .iter()
            .position(|byte| self.firsts[usize::from(*byte)])
    }

    /// Whether all these bytes are the beginning of a secret.
    fn may_begin(&self, bytes: &[u8]) -> bool {
        self.secrets
            .iter()
            .any(|secret| secret.bytes.len() > bytes.len() && secret.bytes.starts_with(bytes))
    }

    /// The longest secret that the bytes begin with.
    fn longest(&self, bytes: &[u8]) -> Option<usize> {
        self.secrets
            .iter()
            .filter(|secret| bytes.starts_with(&secret.bytes))
            .map(|secret| secret.bytes.len())
            .max()
    }
}

/// What comes after some bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    More,
    Nothing,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}
