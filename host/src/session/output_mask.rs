use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::redaction::{MASK, PartialMatch, SecretSearch, SecretSet, Thoroughness};

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

/// How long the possible beginning of a secret is held back for its next letter. Who prints
/// a secret prints it in one piece, or means to hide it.
pub(super) const HOLD_BACK_TIME: Duration = Duration::from_millis(100);

impl OutputMask {
    pub(super) fn new(secrets: Arc<SecretSet>, thoroughness: Thoroughness, offset: u64) -> Self {
        Self {
            search: SecretSearch::new(secrets, thoroughness),
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
            self.held_since = None;
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
        let partial = self.search.partial_match(end);
        if let Some(partial) = partial.filter(PartialMatch::is_hidden) {
            // The letters before were shown, if they came as slowly.
            let hidden = self.released.max(partial.start)..partial.end;
            mask(bytes, offset, std::slice::from_ref(&hidden));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets(values: &[&str]) -> Arc<SecretSet> {
        Arc::new(SecretSet::new(values.iter().map(|it| it.as_bytes()), []))
    }

    /// Bytes that have arrived, and what was read of them.
    struct Output {
        mask: OutputMask,
        waiting: Vec<u8>,
        read: Vec<u8>,
    }

    impl Output {
        fn new(secrets: Arc<SecretSet>) -> Self {
            Self {
                mask: OutputMask::new(secrets, Thoroughness::Fast, 0),
                waiting: Vec::new(),
                read: Vec::new(),
            }
        }

        fn offset(&self) -> u64 {
            self.read.len() as u64
        }

        fn take(&mut self, max: usize, now: Instant) {
            let offset = self.offset();
            let count = self.mask.apply(&mut self.waiting, offset, now).min(max);
            self.read.extend(self.waiting.drain(..count));
        }

        fn finish(&mut self) -> String {
            let offset = self.offset();
            self.mask.apply(&mut self.waiting, offset, Instant::now());
            self.mask.release(&mut self.waiting, offset);
            self.read.append(&mut self.waiting);
            String::from_utf8(std::mem::take(&mut self.read)).unwrap()
        }
    }

    #[test]
    fn a_beginning_is_held_back_for_a_while() {
        let now = Instant::now();
        for (text, first, later) in [
            ("say hun", "say ", "say hun"),
            // More than that is masked then.
            ("say hunter2-hun", "say ", "say ***********"),
        ] {
            let mut output = Output::new(secrets(&["hunter2-hunter2"]));
            output.waiting.extend(text.as_bytes());
            output.take(100, now);
            assert_eq!(output.read, first.as_bytes());
            assert_eq!(output.mask.held_for(now), Some(HOLD_BACK_TIME));
            output.take(100, now + HOLD_BACK_TIME);
            assert_eq!(output.read, later.as_bytes());
            assert_eq!(output.mask.held_for(now), None);
        }
    }

    #[test]
    fn what_follows_a_secret_that_repeats_its_beginning_is_shown() {
        for value in ["hunter2-hunter2", "abababab", "aaaa"] {
            let mut output = Output::new(secrets(&[value]));
            output.waiting.extend(format!("{value}\n").as_bytes());
            assert_eq!(output.finish(), format!("{}\n", "*".repeat(value.len())));
        }
    }

    #[test]
    fn a_secret_that_is_granted_later_is_masked_in_what_was_not_read() {
        let mut output = Output::new(secrets(&["another-value"]));
        output.waiting.extend(b"the token anoth");
        output.take(4, Instant::now());
        let set = secrets(&["another-value", "the token another", "token"]);
        output.mask.set_secrets(&set, &mut output.waiting, 4);
        output.waiting.extend(b"er way");
        assert_eq!(output.finish(), "the ***** another way");
    }

    proptest! {
        #[test]
        fn however_it_arrives_and_is_read_secrets_are_masked(
            pieces in prop::collection::vec(("[a-d]{0,20}", 0..4_u8), 0..12),
            cut in 1..9_usize,
            max in 1..20_usize,
            waits in any::<bool>(),
        ) {
            const VALUE: &str = "abcdabcdabcd";
            let mut output = Output::new(secrets(&[VALUE]));
            let text: String = pieces.iter().map(|(text, kind)| match kind {
                0 => VALUE,
                _ => text,
            }).collect();
            let mut now = Instant::now();
            for piece in text.as_bytes().chunks(cut) {
                output.waiting.extend(piece);
                if waits {
                    now += HOLD_BACK_TIME;
                }
                output.take(max, now);
            }
            let shown = output.finish();
            prop_assert_eq!(shown.len(), text.len());
            prop_assert!(!shown.contains(VALUE), "{}", shown);
            // Nothing else is masked, but for beginnings that were waited for.
            for (at, (seen, sent)) in shown.bytes().zip(text.bytes()).enumerate() {
                prop_assert!(seen == sent || seen == MASK, "at {}: {}", at, shown);
            }
        }
    }
}
