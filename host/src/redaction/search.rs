use std::{collections::VecDeque, ops::Range, sync::Arc};

use vmcell_tree::escape::{Token, Tokenizer};

use super::{
    automaton::{START, State},
    secret_set::{MIN_LENGTH, SecretSet},
};

/// A search for secrets in a stream of bytes.
///
/// Two streams are searched: all bytes, and the visible bytes only, so that line ends and
/// control sequences between the letters of a secret are ignored.
pub(crate) struct SecretSearch {
    secrets: Arc<SecretSet>,
    thoroughness: Thoroughness,
    tokenizer: Tokenizer,
    /// The state of the search in all bytes.
    in_bytes: State,
    /// The state of the search in the visible bytes.
    in_visible: State,
    /// The offsets of the last visible bytes, as many as the longest match has.
    pub(super) visible: VecDeque<u64>,
}

/// What may be the beginning of a secret, because the bytes end with it.
pub(crate) struct PartialMatch {
    /// The offset of its first byte.
    pub(crate) start: u64,
    /// The offset behind its last letter.
    pub(crate) end: u64,
    letters: usize,
    /// How many letters the secret has at least.
    whole: usize,
}

impl PartialMatch {
    /// Returns whether it is masked if nothing more comes: if it is more than half of the
    /// secret. If less were enough, who prints guesses and looks which are masked would find
    /// out one letter after the other; if more were needed, who prints a secret slowly would
    /// show it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.letters > self.whole / 2
    }
}

/// Where secrets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    /// Everywhere, with anything between their letters that is not visible.
    Thorough,
    /// Where several of their bytes are together, with nothing between their letters but line
    /// ends. Most of a stream is passed over.
    Fast,
}

/// The length of the longest line end.
const LINE_END: usize = 2;

/// Begins a control sequence.
const ESCAPE: u8 = 0x1b;

impl SecretSearch {
    pub(crate) fn new(secrets: Arc<SecretSet>, thoroughness: Thoroughness) -> Self {
        Self {
            secrets,
            thoroughness,
            tokenizer: Tokenizer::default(),
            in_bytes: START,
            in_visible: START,
            visible: VecDeque::new(),
        }
    }

    pub(crate) fn secrets(&self) -> &Arc<SecretSet> {
        &self.secrets
    }

    /// Looks for these secrets from now on. `held` are the last bytes that were searched,
    /// in which they may have begun, and `offset` is that of the first of them. Returns the
    /// ranges of those that are in there.
    pub(crate) fn replace_secrets(
        &mut self,
        secrets: Arc<SecretSet>,
        held: &[u8],
        offset: u64,
    ) -> Vec<Range<u64>> {
        self.secrets = secrets;
        self.discard_partial();
        let tokenizer = std::mem::take(&mut self.tokenizer);
        let mut found = Vec::new();
        for (offset, byte) in (offset..).zip(held) {
            self.match_byte(*byte, offset, &mut found);
        }
        self.tokenizer = tokenizer;
        found
    }

    /// Begins anew, because bytes are missing.
    pub(crate) fn restart(&mut self) {
        self.tokenizer = Tokenizer::default();
        self.discard_partial();
    }

    /// Processes bytes. Returns the ranges of the secrets that they complete.
    pub(crate) fn search(&mut self, bytes: &[u8], offset: u64) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        if self.secrets.is_empty() {
            return found;
        }
        let secrets = self.secrets.clone();
        let is_fast = self.thoroughness == Thoroughness::Fast;
        let filter = secrets.filter.as_ref().filter(|_| is_fast);
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
                let from = usize::try_from(first).unwrap_or(at);
                // No match that begins before `next` is whole or may be continued.
                let next = match filter.find(bytes, from) {
                    Ok(seen) => {
                        search_until = seen.saturating_add(reach);
                        seen.saturating_sub(reach)
                    }
                    Err(last) => {
                        search_until = bytes.len();
                        last.saturating_sub(filter.least() + LINE_END)
                    }
                };
                if next > at {
                    self.discard_partial();
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

    /// Returns whether a byte may be a letter of a secret.
    fn is_visible(&mut self, byte: u8) -> bool {
        match self.thoroughness {
            Thoroughness::Thorough => self.tokenizer.step(byte) == Token::Text,
            Thoroughness::Fast => !matches!(byte, b'\n' | b'\r'),
        }
    }

    fn discard_partial(&mut self) {
        (self.in_bytes, self.in_visible) = (START, START);
        self.visible.clear();
    }

    fn match_byte(&mut self, byte: u8, offset: u64, found: &mut Vec<Range<u64>>) {
        let is_visible = self.is_visible(byte);
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
        if !is_visible {
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
    pub(crate) fn partial_match_start(&self, end: u64) -> Option<u64> {
        self.partial_match(end).map(|partial| partial.start)
    }

    /// Returns the earliest partial match. `end` is the offset of the next byte.
    pub(crate) fn partial_match(&self, end: u64) -> Option<PartialMatch> {
        let automaton = &self.secrets.automaton;
        let letters = automaton.unfinished(self.in_bytes);
        let in_bytes = (letters > 0).then(|| PartialMatch {
            start: end.saturating_sub(letters as u64),
            end,
            letters,
            whole: automaton.whole(self.in_bytes),
        });
        let letters = automaton.unfinished(self.in_visible);
        let first = self.visible.len().checked_sub(letters);
        let first = first.filter(|_| letters > 0);
        let start = first.and_then(|first| self.visible.get(first).copied());
        let in_visible = start.map(|start| PartialMatch {
            start,
            end: self
                .visible
                .back()
                .map_or(end, |last| last.saturating_add(1)),
            letters,
            whole: automaton.whole(self.in_visible),
        });
        let both = in_bytes.into_iter().chain(in_visible);
        both.min_by_key(|partial| partial.start)
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
