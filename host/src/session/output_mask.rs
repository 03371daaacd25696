use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::redaction::{MASK, PartialMatch, SecretSearch, SecretSet, Thoroughness};

/// Masks secrets in bytes as they arrive, before they are read.
///
/// ```text
///  unread           hold_from        end
///    |  may be read   |  may be the   |  to come
///    |                |  beginning    |
///    |                |  of a secret  |
/// ```
pub(super) struct OutputMask {
    search: SecretSearch,
    /// The offset of the next byte to arrive.
    end: u64,
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
            end: offset,
            released: offset,
            held_since: None,
        }
    }

    pub(super) fn secrets(&self) -> &Arc<SecretSet> {
        self.search.secrets()
    }

    /// Masks secrets in the bytes that were not read, of which this many are new.
    pub(super) fn arrived(&mut self, unread: &mut [u8], count: usize) {
        let known = unread.len().saturating_sub(count);
        let found = self.search.search(&unread[known..], self.end);
        self.end = self.end.saturating_add(count as u64);
        self.mask(unread, &found);
        self.held_since = None;
    }

    /// Masks these secrets from now on, and in bytes that were not read. The last of them is
    /// the one before the offset `end`.
    pub(super) fn set_secrets(&mut self, secrets: &Arc<SecretSet>, unread: &mut [u8], end: u64) {
        let offset = end.saturating_sub(unread.len() as u64);
        let secrets = secrets.clone();
        let found = self.search.replace_secrets(secrets, unread, offset);
        self.end = end;
        self.mask(unread, &found);
    }

    /// Returns how many of the bytes that were not read are held back.
    pub(super) fn held_back(&mut self, unread: &mut [u8], now: Instant) -> usize {
        let begun = self.search.partial_match_start(self.end);
        let hold_from = begun.unwrap_or(self.end).max(self.released);
        if hold_from >= self.end {
            self.held_since = None;
            return 0;
        }
        let since = *self.held_since.get_or_insert(now);
        if now.duration_since(since) >= HOLD_BACK_TIME {
            self.release(unread);
            return 0;
        }
        unread.len() - self.index(unread, hold_from)
    }

    /// Lets all bytes be read that are held back, because nothing more comes for now.
    pub(super) fn release(&mut self, unread: &mut [u8]) {
        let partial = self.search.partial_match(self.end);
        if let Some(partial) = partial.filter(PartialMatch::is_hidden) {
            // The letters before were shown, if they came as slowly.
            let hidden = self.released.max(partial.start)..partial.end;
            self.mask(unread, std::slice::from_ref(&hidden));
        }
        self.released = self.end;
        self.held_since = None;
    }

    /// Begins anew at an offset, because the bytes before it are missing.
    pub(super) fn restart(&mut self, offset: u64) {
        self.search.restart();
        (self.end, self.released) = (offset, offset);
        self.held_since = None;
    }

    /// Returns how long bytes are still held back, if any are.
    pub(super) fn held_for(&self, now: Instant) -> Option<Duration> {
        let since = self.held_since?;
        Some(HOLD_BACK_TIME.saturating_sub(now.duration_since(since)))
    }

    /// Masks ranges of offsets. What was read already stays as it is.
    fn mask(&self, unread: &mut [u8], ranges: &[Range<u64>]) {
        for range in ranges {
            let range = self.index(unread, range.start)..self.index(unread, range.end);
            unread[range].fill(MASK);
        }
    }

    /// Returns the index of the byte with this offset, or of the first one if that was read.
    fn index(&self, unread: &[u8], offset: u64) -> usize {
        let behind = usize::try_from(self.end.saturating_sub(offset));
        behind.map_or(0, |behind| unread.len().saturating_sub(behind))
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

        fn print(&mut self, text: &[u8]) {
            self.waiting.extend(text);
            self.mask.arrived(&mut self.waiting, text.len());
        }

        fn take(&mut self, max: usize, now: Instant) {
            let held_back = self.mask.held_back(&mut self.waiting, now);
            let count = max.min(self.waiting.len() - held_back);
            self.read.extend(self.waiting.drain(..count));
        }

        fn finish(&mut self) -> String {
            self.mask.release(&mut self.waiting);
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
            output.print(text.as_bytes());
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
            output.print(format!("{value}\n").as_bytes());
            assert_eq!(output.finish(), format!("{}\n", "*".repeat(value.len())));
        }
    }

    #[test]
    fn a_secret_that_is_granted_later_is_masked_in_what_was_not_read() {
        let mut output = Output::new(secrets(&["another-value"]));
        output.print(b"the token anoth");
        output.take(4, Instant::now());
        let set = secrets(&["another-value", "the token another", "token"]);
        output.mask.set_secrets(&set, &mut output.waiting, 15);
        output.print(b"er way");
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
                output.print(piece);
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
