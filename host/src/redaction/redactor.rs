use std::{collections::VecDeque, fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use vmcell_tree::escape::{Token, Tokenizer};
use zeroize::Zeroizing;

use super::{
    automaton::{START, State},
    scan::{ScanMode, SecretScan},
    secret_set::{MIN_LENGTH, SecretSet},
};

/// Masks every secret in a stream of bytes.
///
/// If the bytes end with the possible beginning of a secret, that is held back
/// until the next bytes decide, or until [`Redactor::release`]. A match continues
/// after a release: if the rest of the secret comes later,
/// [`Redacted::late_masks`] reports what has to be masked.
///
/// Two streams are searched: all bytes, and the visible bytes only, so that line ends and
/// control sequences between the letters of a secret are ignored.
pub(crate) struct Redactor {
    secrets: Arc<SecretSet>,
    thoroughness: Thoroughness,
    tokenizer: Tokenizer,
    /// The state of the search in all bytes.
    in_bytes: State,
    /// The state of the search in the visible bytes.
    in_visible: State,
    /// The offsets of the last visible bytes, as many as the longest match has.
    pub(super) visible: VecDeque<u64>,
    /// The offset of the first byte that was not returned.
    offset: u64,
    pub(super) held: Zeroizing<Vec<u8>>,
}

/// Where secrets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    /// Everywhere, with anything between their letters that is not visible.
    Thorough,
    /// Where several of their bytes are together, or there are control sequences. Most of a
    /// stream is passed over.
    Fast,
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

/// Replaces each byte of a secret.
pub(crate) const MASK: u8 = b'*';

/// Begins a control sequence.
const ESCAPE: u8 = 0x1b;

/// Limits the bytes that are held back, since any number of control sequences may
/// stand within a secret.
pub(super) const MAX_HELD: usize = 16 * 1024;

impl Redactor {
    /// Creates a redactor for a stream whose next byte has this offset.
    pub(crate) fn new(secrets: Arc<SecretSet>, offset: u64, thoroughness: Thoroughness) -> Self {
        Self {
            secrets,
            thoroughness,
            tokenizer: Tokenizer::default(),
            in_bytes: START,
            in_visible: START,
            visible: VecDeque::new(),
            offset,
            held: Zeroizing::default(),
        }
    }

    /// Masks these secrets from now on. What was held back for others stays held back.
    pub(crate) fn replace_secrets(&mut self, secrets: Arc<SecretSet>) {
        self.secrets = secrets;
        self.restart();
        // Their beginning may have arrived.
        let held = Zeroizing::new(std::mem::take(&mut *self.held));
        let tokenizer = std::mem::take(&mut self.tokenizer);
        let mut found = Vec::new();
        for (offset, byte) in (self.offset..).zip(held.iter()) {
            self.match_byte(*byte, offset, &mut found);
        }
        self.tokenizer = tokenizer;
        self.held = Zeroizing::new(masked(&held, self.offset, &found));
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
        let found = self.search(&bytes[known..], offset.saturating_add(known as u64));
        if !found.is_empty() {
            bytes = masked(&bytes, offset, &found).into();
        }
        let before = found.into_iter().filter(|range| range.start < offset);
        let late_masks: Vec<_> = before
            .map(|range| range.start..range.end.min(offset))
            .collect();
        let hold_from = match self.partial_match_start(end) {
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

    /// Skips lost bytes. No bytes may be held back.
    pub(crate) fn skip(&mut self, lost: u64) {
        self.offset = self.offset.saturating_add(lost);
        self.tokenizer = Tokenizer::default();
        self.restart();
    }

    /// Returns a search for secrets in stored text, or `None` without secrets.
    pub(crate) fn scan(&self, mode: ScanMode) -> Option<SecretScan<'_>> {
        self.secrets.scan(mode)
    }

    /// Processes bytes. Returns the ranges of the secrets that they complete.
    fn search(&mut self, bytes: &[u8], offset: u64) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        if self.secrets.is_empty() {
            return found;
        }
        let secrets = self.secrets.clone();
        let filter = secrets.filter.as_ref().filter(|_| self.can_skip(bytes));
        // Line ends may be within a match.
        let reach = secrets.longest.saturating_mul(2);
        let mut search_until = 0;
        let mut at = 0;
        while at < bytes.len() {
            let begun = self.partial_match_start(offset.saturating_add(at as u64));
            let first = begun.map_or(Some(at as u64), |begun| begun.checked_sub(offset));
            if let Some(filter) = filter
                && at >= search_until
                && let Some(first) = first
            {
                let seen = filter.find(bytes, usize::try_from(first).unwrap_or(at));
                search_until = seen.map_or(bytes.len(), |seen| seen.saturating_add(reach));
                // No match that begins before this is whole or may be continued.
                let next = seen.unwrap_or(bytes.len()).saturating_sub(reach);
                if next > at {
                    self.restart();
                    at = next;
                }
            }
            if begun.is_none() && self.tokenizer.is_ground() {
                let can_begin = |byte: &u8| *byte == ESCAPE || secrets.can_begin_with(*byte);
                let next = bytes[at..].iter().position(can_begin);
                at = next.map_or(bytes.len(), |next| at + next);
            }
            if let Some(byte) = bytes.get(at) {
                self.match_byte(*byte, offset.saturating_add(at as u64), &mut found);
            }
            at += 1;
        }
        found
    }

    /// Returns whether there is nothing between visible letters but line ends.
    fn can_skip(&self, bytes: &[u8]) -> bool {
        self.thoroughness == Thoroughness::Fast
            && self.tokenizer.is_ground()
            && !bytes.contains(&ESCAPE)
    }

    /// Discards partial matches.
    fn restart(&mut self) {
        (self.in_bytes, self.in_visible) = (START, START);
        self.visible.clear();
    }

    fn match_byte(&mut self, byte: u8, offset: u64, found: &mut Vec<Range<u64>>) {
        let Self {
            secrets, visible, ..
        } = self;
        let automaton = &secrets.automaton;
        let end = offset.saturating_add(1);
        self.in_bytes = automaton.step(self.in_bytes, byte);
        let matched = automaton.matched(self.in_bytes);
        if matched > 0 {
            push_merged(found, end.saturating_sub(matched as u64)..end);
        }
        if self.tokenizer.step(byte) != Token::Text {
            return;
        }
        if visible.len() >= secrets.longest {
            visible.pop_front();
        }
        visible.push_back(offset);
        self.in_visible = automaton.step(self.in_visible, byte);
        let matched = automaton.matched(self.in_visible);
        if matched >= MIN_LENGTH {
            let first = visible.len().saturating_sub(matched);
            for offset in visible.range(first..) {
                push_merged(found, *offset..offset.saturating_add(1));
            }
        }
    }

    /// Returns the offset of the earliest partial match. `end` is the offset of
    /// the next byte.
    fn partial_match_start(&self, end: u64) -> Option<u64> {
        let automaton = &self.secrets.automaton;
        let in_bytes = automaton.unfinished(self.in_bytes);
        let in_bytes = (in_bytes > 0).then(|| end.saturating_sub(in_bytes as u64));
        let in_visible = automaton.unfinished(self.in_visible);
        let first = self.visible.len().checked_sub(in_visible);
        let first = first.filter(|_| in_visible > 0);
        let in_visible = first.and_then(|first| self.visible.get(first).copied());
        in_bytes.into_iter().chain(in_visible).min()
    }
}

/// Appends a range, merged with the last one if they touch.
fn push_merged(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.start <= range.start && range.start <= last.end => {
            last.end = last.end.max(range.end);
        }
        _ => ranges.push(range),
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
            .field("secrets", &self.secrets)
            .finish_non_exhaustive()
    }
}
