//! Masks secrets in terminal output.
//!
//! ```text
//!  bytes ──> Redactor ──> shown: to the transcript, the screen, the records
//!               │           and all followers
//!               ├──────> held back, until the next bytes decide or a timeout
//!               └──────> late: a secret is complete whose beginning was shown;
//!                          the stored copies of that are masked in place
//! ```
//!
//! Each byte of a secret is replaced by an asterisk, so offsets do not change.

mod scan;
mod secret;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, fmt, ops::Range};

use bytes::Bytes;
use vmcell_tree::escape::{Token, Tokenizer};
use zeroize::Zeroizing;

pub(crate) use scan::{ScanMode, SecretScan};
use secret::Secret;

/// Masks every secret in a stream of bytes.
///
/// If the bytes end with the possible beginning of a secret, that is held back
/// until the next bytes decide, or until [`Redactor::release`]. A match continues
/// after a release: if the rest of the secret comes later,
/// [`Redacted::late_masks`] reports what has to be masked.
///
/// Secrets are zeroed when the redactor is dropped.
pub(crate) struct Redactor {
    /// Not empty, the newest last.
    secrets: Vec<Secret>,
    /// Bytes that can start a match (the first ones of secrets), and ESC.
    start_bytes: [bool; 256],
    tokenizer: Tokenizer,
    /// The offsets of the last visible bytes, as many as the longest secret has.
    visible: VecDeque<u64>,
    /// The offset of the first byte that was not returned.
    offset: u64,
    held: Zeroizing<Vec<u8>>,
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

/// With more secrets, the oldest are dropped.
const MAX_SECRETS: usize = 16;

/// Of longer secrets only the beginning is masked. A terminal accepts no longer
/// lines.
const MAX_LENGTH: usize = 4096;

/// Limits the bytes that are held back, since any number of control sequences may
/// stand within a secret.
const MAX_HELD: usize = 16 * 1024;

impl Redactor {
    /// Creates a redactor for a stream whose next byte has this offset.
    pub(crate) fn new(offset: u64) -> Self {
        Self {
            secrets: Vec::new(),
            start_bytes: [false; 256],
            tokenizer: Tokenizer::default(),
            visible: VecDeque::new(),
            offset,
            held: Zeroizing::default(),
        }
    }

    /// Masks a secret from now on. Line ends at its end are ignored.
    pub(crate) fn hide(&mut self, secret: &[u8]) {
        let end = secret
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last + 1);
        let secret = &secret[..end.min(MAX_LENGTH)];
        if secret.is_empty() {
            return;
        }
        self.secrets.retain(|known| known.bytes() != secret);
        if self.secrets.len() == MAX_SECRETS {
            self.secrets.remove(0);
        }
        self.secrets.push(Secret::new(secret));
        self.update_start_bytes();
    }

    /// Stops masking very short secrets, because something else is typed.
    pub(crate) fn forget_short_secrets(&mut self) {
        if self.secrets.iter().any(Secret::is_short) {
            self.secrets.retain(|secret| !secret.is_short());
            self.update_start_bytes();
        }
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
            bytes = masked(&bytes, offset, &found);
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
        self.secrets.iter_mut().for_each(Secret::restart);
    }

    /// Returns a search for secrets in stored text, or `None` without secrets.
    pub(crate) fn scan(&self, mode: ScanMode) -> Option<SecretScan<'_>> {
        (!self.secrets.is_empty()).then(|| SecretScan::new(&self.secrets, mode))
    }

    /// Processes bytes. Returns the ranges of the secrets that they complete.
    fn search(&mut self, bytes: &[u8], offset: u64) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        if self.secrets.is_empty() {
            return found;
        }
        let mut at = 0;
        while at < bytes.len() {
            if self.is_idle() {
                let next = bytes[at..]
                    .iter()
                    .position(|byte| self.start_bytes[usize::from(*byte)]);
                at = next.map_or(bytes.len(), |next| at + next);
            }
            if let Some(byte) = bytes.get(at) {
                self.match_byte(*byte, offset.saturating_add(at as u64), &mut found);
            }
            at += 1;
        }
        found
    }

    /// Returns whether no match is in progress, outside of control sequences.
    fn is_idle(&self) -> bool {
        let mut secrets = self.secrets.iter();
        self.tokenizer.is_ground()
            && secrets.all(|secret| secret.matched_bytes == 0 && secret.matched_visible == 0)
    }

    fn match_byte(&mut self, byte: u8, offset: u64, found: &mut Vec<Range<u64>>) {
        let is_visible = self.tokenizer.step(byte) == Token::Text;
        if is_visible {
            let longest = self.secrets.iter().map(Secret::length).max();
            while self.visible.len() >= longest.unwrap_or(0).max(1) {
                self.visible.pop_front();
            }
            self.visible.push_back(offset);
        }
        let end = offset.saturating_add(1);
        for secret in &mut self.secrets {
            let length = secret.length();
            if secret.feed(byte) {
                push_merged(found, end.saturating_sub(length as u64)..end);
            }
            if is_visible && secret.feed_visible(byte) {
                let first = self.visible.len().saturating_sub(length);
                for offset in self.visible.range(first..) {
                    push_merged(found, *offset..offset.saturating_add(1));
                }
            }
        }
    }

    /// Returns the offset of the earliest partial match. `end` is the offset of
    /// the next byte.
    fn partial_match_start(&self, end: u64) -> Option<u64> {
        let starts = self.secrets.iter().flat_map(|secret| {
            let in_bytes =
                (secret.matched_bytes > 0).then(|| end.saturating_sub(secret.matched_bytes as u64));
            let first = self.visible.len().checked_sub(secret.matched_visible);
            let first = first.filter(|_| secret.matched_visible > 0);
            let in_visible = first.and_then(|first| self.visible.get(first).copied());
            [in_bytes, in_visible].into_iter().flatten()
        });
        starts.min()
    }

    fn update_start_bytes(&mut self) {
        self.start_bytes = [false; 256];
        self.start_bytes[usize::from(b'\x1b')] = true;
        for first in self
            .secrets
            .iter()
            .filter_map(|secret| secret.bytes().first())
        {
            self.start_bytes[usize::from(*first)] = true;
        }
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
fn masked(bytes: &[u8], offset: u64, ranges: &[Range<u64>]) -> Bytes {
    let mut masked = bytes.to_vec();
    let index = |at: u64| {
        let at = usize::try_from(at.saturating_sub(offset));
        at.map_or(bytes.len(), |at| at.min(bytes.len()))
    };
    for range in ranges {
        masked[index(range.start)..index(range.end)].fill(MASK);
    }
    masked.into()
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}
