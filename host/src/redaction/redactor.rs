use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use zeroize::Zeroizing;

use super::{
    MASK,
    search::{SecretSearch, Thoroughness},
    secret_set::SecretSet,
};

#[cfg(feature = "terminal")]
use super::scan::{ScanMode, SecretScan};

/// Masks every secret in a stream of bytes.
///
/// If the bytes end with the possible beginning of a secret, that is held back
/// until the next bytes decide, or until [`Redactor::release`]. A match continues
/// after a release: if the rest of the secret comes later,
/// [`Redacted::late_masks`] reports what has to be masked.
pub(crate) struct Redactor {
    pub(super) search: SecretSearch,
    /// The offset of the first byte that was not returned.
    offset: u64,
    pub(super) held: Zeroizing<Vec<u8>>,
}

/// The output of a redactor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redacted {
    /// Bytes that may be shown.
    pub(crate) bytes: Bytes,
    /// The offset of the first of them.
    pub(crate) offset: u64,
    /// Ranges of bytes that were returned before and have to be masked now.
    pub(crate) late_masks: Vec<Range<u64>>,
}

/// Limits the bytes that are held back, since any number of control sequences may
/// stand within a secret.
pub(super) const MAX_HELD: usize = 16 * 1024;

impl Redactor {
    /// Creates a redactor for a stream whose next byte has this offset.
    pub(crate) fn new(secrets: Arc<SecretSet>, offset: u64, thoroughness: Thoroughness) -> Self {
        Self {
            search: SecretSearch::new(secrets, thoroughness),
            offset,
            held: Zeroizing::default(),
        }
    }

    /// Masks these secrets from now on.
    #[cfg(feature = "terminal")]
    pub(crate) fn replace_secrets(&mut self, secrets: Arc<SecretSet>) {
        let held = &self.held;
        let found = self.search.replace_secrets(secrets, held, self.offset);
        self.held = Zeroizing::new(masked(held, self.offset, &found));
    }

    /// Returns whether bytes are held back.
    pub(crate) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Processes bytes and returns those that may be shown. Copies nothing if
    /// nothing is masked.
    pub(crate) fn feed(&mut self, bytes: Bytes) -> Redacted {
        let known = self.held.len();
        let mut bytes = match known {
            0 => bytes,
            _ => {
                let mut whole = std::mem::take(&mut *self.held);
                whole.extend_from_slice(&bytes);
                whole.into()
            }
        };
        let offset = self.offset;
        let end = offset.saturating_add(length(&bytes));
        let found = self
            .search
            .search(&bytes[known..], offset.saturating_add(known as u64));
        if !found.is_empty() {
            bytes = masked(&bytes, offset, &found).into();
        }
        let before = found.into_iter().filter(|range| range.start < offset);
        let late_masks: Vec<_> = before
            .map(|range| range.start..range.end.min(offset))
            .collect();
        let hold_from = match self.search.partial_match_start(end) {
            // To mask a late secret on the screen, all its letters must be there.
            Some(start) if late_masks.is_empty() => start.max(offset),
            _ => end,
        };
        let held = usize::try_from(end - hold_from).unwrap_or(usize::MAX);
        let held = if held > MAX_HELD { 0 } else { held };
        let held = bytes.split_off(bytes.len().saturating_sub(held));
        self.offset = end.saturating_sub(length(&held));
        self.held = Zeroizing::new(held.to_vec());
        Redacted {
            bytes,
            offset,
            late_masks,
        }
    }

    /// Returns the bytes that are held back. If the rest of a secret comes later,
    /// it is still found.
    pub(crate) fn release(&mut self) -> Redacted {
        let bytes = Bytes::from(std::mem::take(&mut *self.held));
        let offset = self.offset;
        self.offset = offset.saturating_add(length(&bytes));
        Redacted {
            bytes,
            offset,
            late_masks: Vec::new(),
        }
    }

    /// Returns whether the bytes that are held back are masked if nothing more comes.
    #[cfg(feature = "broker")]
    pub(crate) fn hides_held(&self) -> bool {
        let end = self.offset.saturating_add(length(&self.held));
        let partial = self.search.partial_match(end);
        partial.is_some_and(|partial| partial.is_hidden())
    }

    /// Skips lost bytes. No bytes may be held back.
    #[cfg(feature = "terminal")]
    pub(crate) fn skip(&mut self, lost: u64) {
        self.offset = self.offset.saturating_add(lost);
        self.search.restart();
    }

    /// Returns a search for secrets in stored text, or `None` without secrets.
    #[cfg(feature = "terminal")]
    pub(crate) fn scan(&self, mode: ScanMode) -> Option<SecretScan<'_>> {
        self.search.secrets().scan(mode)
    }
}

/// Returns the bytes with ranges masked. `offset` is that of the first byte.
fn masked(bytes: &[u8], offset: u64, ranges: &[Range<u64>]) -> Vec<u8> {
    let mut masked = bytes.to_vec();
    let index = |at: u64| {
        let at = usize::try_from(at.saturating_sub(offset));
        at.map_or(bytes.len(), |at| at.min(bytes.len()))
    };
    for range in ranges {
        masked[index(range.start)..index(range.end)].fill(MASK);
    }
    masked
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", self.search.secrets())
            .finish_non_exhaustive()
    }
}
