//! Hides secrets in what a terminal prints.
//!
//! ```text
//!  bytes ──> Redactor ──> shown: to the transcript, the screen, the records
//!               │           and everybody who follows
//!               ├──────> held back, until the next bytes decide or time is over
//!               └──────> late: a secret is complete whose beginning was shown;
//!                          what is kept of that is masked where it is
//! ```
//!
//! A secret that is found is overwritten with as many asterisks as it has bytes,
//! so no offset changes.

mod escape_state;
mod scan;
mod secret;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, fmt, ops::Range};

use bytes::Bytes;
use zeroize::Zeroizing;

use escape_state::{ESCAPE, EscapeState};
pub(crate) use scan::{ScanMode, SecretScan};
use secret::Secret;

/// Passes bytes on, with every secret in them masked.
///
/// The end of the bytes may be the beginning of a secret. It is held back until
/// the next bytes decide, or until [`Redactor::release`]. What was released is
/// still remembered: if the rest of the secret comes, however late, the answer
/// says what has to be masked.
///
/// Secrets do not stay in memory longer than the redactor.
pub(crate) struct Redactor {
    /// The newest comes last. None is empty.
    secrets: Vec<Secret>,
    /// Bytes at which a search has to begin: the first ones of secrets, and escape.
    start_bytes: [bool; 256],
    escape_state: EscapeState,
    /// The offsets of the last bytes that can be seen, as many as the longest
    /// secret has.
    visible_offsets: VecDeque<u64>,
    /// The offset of the first byte that was not passed on.
    offset: u64,
    held: Zeroizing<Vec<u8>>,
}

/// What a redactor passes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redacted {
    /// Bytes that may be shown.
    pub(crate) bytes: Bytes,
    /// The offset of the first of them.
    pub(crate) offset: u64,
    /// What was passed on before and has to be masked now.
    pub(crate) late_masks: Vec<Range<u64>>,
}

/// Stands for each byte of a secret.
pub(crate) const MASK: u8 = b'*';

/// The oldest secrets are forgotten when there are more.
const MAX_SECRETS: usize = 16;

/// Of longer secrets only the beginning is hidden. A terminal takes no longer
/// lines.
const MAX_LENGTH: usize = 4096;

/// Not more is held back: control sequences without end may stand within a
/// secret.
const MAX_HELD: usize = 16 * 1024;

impl Redactor {
    /// For a stream whose next byte has this offset.
    pub(crate) fn new(offset: u64) -> Self {
        Self {
            secrets: Vec::new(),
            start_bytes: [false; 256],
            escape_state: EscapeState::default(),
            visible_offsets: VecDeque::new(),
            offset,
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
        self.secrets.retain(|known| known.bytes() != secret);
        if self.secrets.len() == MAX_SECRETS {
            self.secrets.remove(0);
        }
        self.secrets.push(Secret::new(secret));
        self.update_start_bytes();
    }

    /// Something else is typed: very short secrets are not hidden any more.
    pub(crate) fn forget_short_secrets(&mut self) {
        if self.secrets.iter().any(Secret::is_short) {
            self.secrets.retain(|secret| !secret.is_short());
            self.update_start_bytes();
        }
    }

    /// Whether something is held back.
    pub(crate) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes bytes and returns those that may be shown. Nothing is copied where
    /// nothing is hidden.
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
            // The letters of a late one are searched for among those behind them.
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

    /// Returns what is held back: nothing more came for a while. If the rest of a
    /// secret comes later, it is found nevertheless.
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

    /// So many bytes are missing here. Nothing may be held back.
    pub(crate) fn skip(&mut self, lost: u64) {
        self.offset = self.offset.saturating_add(lost);
        self.escape_state = EscapeState::default();
        self.secrets.iter_mut().for_each(Secret::restart);
    }

    /// Searches text that is kept already. None: there is nothing to search for.
    pub(crate) fn scan(&self, mode: ScanMode) -> Option<SecretScan<'_>> {
        (!self.secrets.is_empty()).then(|| SecretScan::new(&self.secrets, mode))
    }

    /// Takes bytes, and returns where the letters of secrets are that they
    /// complete.
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

    /// Whether no secret has begun, and all bytes can be seen.
    fn is_idle(&self) -> bool {
        let mut secrets = self.secrets.iter();
        self.escape_state == EscapeState::Text
            && secrets.all(|secret| secret.matched_bytes == 0 && secret.matched_visible == 0)
    }

    fn match_byte(&mut self, byte: u8, offset: u64, found: &mut Vec<Range<u64>>) {
        let is_visible = self.escape_state.feed(byte);
        if is_visible {
            let longest = self.secrets.iter().map(Secret::length).max();
            while self.visible_offsets.len() >= longest.unwrap_or(0).max(1) {
                self.visible_offsets.pop_front();
            }
            self.visible_offsets.push_back(offset);
        }
        let end = offset.saturating_add(1);
        for secret in &mut self.secrets {
            let length = secret.length();
            if secret.feed(byte) {
                push_merged(found, end.saturating_sub(length as u64)..end);
            }
            if is_visible && secret.feed_visible(byte) {
                let first = self.visible_offsets.len().saturating_sub(length);
                for offset in self.visible_offsets.range(first..) {
                    push_merged(found, *offset..offset.saturating_add(1));
                }
            }
        }
    }

    /// Where the first secret begins whose end has not come, if the next byte has
    /// this offset.
    fn partial_match_start(&self, end: u64) -> Option<u64> {
        let starts = self.secrets.iter().flat_map(|secret| {
            let in_bytes =
                (secret.matched_bytes > 0).then(|| end.saturating_sub(secret.matched_bytes as u64));
            let first = self
                .visible_offsets
                .len()
                .checked_sub(secret.matched_visible);
            let first = first.filter(|_| secret.matched_visible > 0);
            let in_visible = first.and_then(|first| self.visible_offsets.get(first).copied());
            [in_bytes, in_visible].into_iter().flatten()
        });
        starts.min()
    }

    fn update_start_bytes(&mut self) {
        self.start_bytes = [false; 256];
        self.start_bytes[usize::from(ESCAPE)] = true;
        for first in self
            .secrets
            .iter()
            .filter_map(|secret| secret.bytes().first())
        {
            self.start_bytes[usize::from(*first)] = true;
        }
    }
}

/// Adds a range, as one with the last if they touch.
fn push_merged(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.start <= range.start && range.start <= last.end => {
            last.end = last.end.max(range.end);
        }
        _ => ranges.push(range),
    }
}

/// Bytes that begin at an offset, with ranges of offsets masked.
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
