use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::redaction::{MASK, SecretSearch, SecretSet, Thoroughness};

/// Masks secrets in bytes that have arrived, before they are read.
///
/// ```text
///  taken            hold_from       arrived
///    |  may be read   |  may be the   |  to come
///    |                |  beginning    |
///    |                |  of a secret  |
/// ```
pub(super) struct OutputMask {
    search: SecretSearch,
    /// The offset of the first byte that was not searched.
    searched: u64,
    /// Bytes before this one are not held back any more.
    released: u64,
    held_since: Option<Instant>,
}

/// How long the possible beginning of a secret is held back. Who prints a secret prints it
/// in one piece, or means to hide it.
pub(super) const HOLD_BACK_TIME: Duration = Duration::from_millis(100);

/// When nothing more comes, a beginning of this length is masked, and a shorter one is shown:
/// it is in most texts, and a secret is not known by it.
const MAX_SHOWN: u64 = 3;

impl OutputMask {
    pub(super) fn new(secrets: Arc<SecretSet>, offset: u64) -> Self {
        Self {
            search: SecretSearch::new(secrets, Thoroughness::Fast),
            searched: offset,
            released: offset,
            held_since: None,
        }
    }

    /// Masks these secrets from now on. `bytes` have arrived and were not read, and the
    /// first of them has this offset.
    pub(super) fn set_secrets(&mut self, secrets: &Arc<SecretSet>, bytes: &mut [u8], offset: u64) {
        if Arc::ptr_eq(self.search.secrets(), secrets) {
            return;
        }
        let known = bytes.get(..index(offset, self.searched, bytes.len()));
        let known = known.unwrap_or_default().to_vec();
        let found = self.search.replace_secrets(secrets.clone(), &known, offset);
        mask(bytes, offset, &found);
    }

    /// Masks secrets in bytes that are to be read, of which the first has this offset.
    /// Returns how many of them may be read, if more can follow.
    pub(super) fn apply(&mut self, bytes: &mut [u8], offset: u64, now: Instant) -> usize {
        let first = index(offset, self.searched, bytes.len());
        let end = offset.saturating_add(bytes.len() as u64);
        if first < bytes.len() {
            let found = self
                .search
                .search(&bytes[first..], self.searched.max(offset));
            mask(bytes, offset, &found);
            self.searched = end;
        }
        let begun = self.search.partial_match_start(end).unwrap_or(end);
        let hold_from = begun.max(self.released);
        if hold_from >= end {
            self.held_since = None;
            return bytes.len();
        }
        let since = *self.held_since.get_or_insert(now);
        if now.duration_since(since) >= HOLD_BACK_TIME {
            self.release(bytes, offset);
            return bytes.len();
        }
        index(offset, hold_from, bytes.len())
    }

    /// Lets all bytes be read that were held back, because nothing more comes for now.
    pub(super) fn release(&mut self, bytes: &mut [u8], offset: u64) {
        let end = offset.saturating_add(bytes.len() as u64);
        let begun = self.search.partial_match_start(end).unwrap_or(end);
        // The letters before were shown, if they came as slowly.
        let shown = begun.saturating_add(MAX_SHOWN);
        if end > shown {
            mask(bytes, offset, &[self.released.max(begun)..end]);
        }
        self.released = end;
        self.held_since = None;
    }

    /// Begins anew at an offset, because the bytes before it are missing.
    pub(super) fn restart(&mut self, offset: u64) {
        self.search.restart();
        (self.searched, self.released) = (offset, offset);
        self.held_since = None;
    }

    /// Returns how long bytes are still held back, if any are.
    pub(super) fn held_for(&self, now: Instant) -> Option<Duration> {
        let since = self.held_since?;
        Some(HOLD_BACK_TIME.saturating_sub(now.duration_since(since)))
    }
}

/// Returns the index of the byte with an offset, if the first one has `first`.
fn index(first: u64, offset: u64, length: usize) -> usize {
    let index = usize::try_from(offset.saturating_sub(first));
    index.map_or(length, |index| index.min(length))
}

/// Masks ranges of offsets. What was read already stays as it is.
fn mask(bytes: &mut [u8], first: u64, ranges: &[std::ops::Range<u64>]) {
    let length = bytes.len();
    for range in ranges {
        let range = index(first, range.start, length)..index(first, range.end, length);
        if let Some(found) = bytes.get_mut(range) {
            found.fill(MASK);
        }
    }
}
