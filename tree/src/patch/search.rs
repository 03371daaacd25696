//! Finds lines in a file, in a time that no file can drive up.

use std::{
    cell::OnceCell,
    hash::{BuildHasher, RandomState},
};

use super::line::{Lines, TextLine};

/// How many lines may be looked at for all hunks of a file together.
const BUDGET: usize = 1 << 26;

/// How far from the wanted place is looked first. It grows fourfold.
const FIRST_REACH: usize = 64;

/// Where the lines may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    End,
    Both,
    Anywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    At(usize),
    Nowhere,
    TooSlow,
}

/// Looks for lines in one file.
pub(super) struct Search<'a> {
    lines: &'a Lines<'a>,
    /// Lines are compared by keyed hashes, so that nobody can make two alike.
    state: RandomState,
    hashes: OnceCell<Vec<u64>>,
    budget: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(lines: &'a Lines<'a>) -> Self {
        Self {
            lines,
            state: RandomState::new(),
            hashes: OnceCell::new(),
            budget: BUDGET,
        }
    }

    pub(super) fn lines(&self) -> &'a Lines<'a> {
        self.lines
    }

    pub(super) fn hashes(&self) -> &[u64] {
        self.hashes
            .get_or_init(|| self.lines.iter().map(|line| self.hash(line)).collect())
    }

    pub(super) fn hash(&self, line: TextLine<'_>) -> u64 {
        self.state.hash_one(line)
    }

    /// The place of the pattern that is nearest to the wanted one, and not
    /// before the first that is allowed. Of two that are as near it is the
    /// later.
    pub(super) fn find(
        &mut self,
        pattern: &[TextLine<'_>],
        wanted: usize,
        first: usize,
        anchor: Anchor,
    ) -> Found {
        let Some(last) = self.lines.len().checked_sub(pattern.len()) else {
            return Found::Nowhere;
        };
        if last < first {
            return Found::Nowhere;
        }
        if !self.spend(pattern.len()) {
            return Found::TooSlow;
        }
        let only = match anchor {
            Anchor::Start => Some(0),
            Anchor::End => Some(last),
            Anchor::Both if last == 0 => Some(0),
            Anchor::Both => return Found::Nowhere,
            Anchor::Anywhere => None,
        };
        if let Some(only) = only {
            return if only >= first && self.is_at(pattern, only) {
                Found::At(only)
            } else {
                Found::Nowhere
            };
        }
        if (first..=last).contains(&wanted) && self.is_at(pattern, wanted) {
            return Found::At(wanted);
        }
        // Nothing is everywhere: only the wanted place counts.
        if pattern.is_empty() {
            return Found::Nowhere;
        }
        self.find_near(pattern, wanted.clamp(first, last), first, last)
    }

    fn find_near(
        &mut self,
        pattern: &[TextLine<'_>],
        wanted: usize,
        first: usize,
        last: usize,
    ) -> Found {
        let pattern_hashes: Vec<u64> = pattern.iter().map(|line| self.hash(*line)).collect();
        let matcher = Matcher::new(&pattern_hashes);
        let mut reach = FIRST_REACH;
        loop {
            let from = wanted.saturating_sub(reach).max(first);
            let to = wanted.saturating_add(reach).min(last);
            if !self.spend(to - from + pattern.len()) {
                return Found::TooSlow;
            }
            let window = &self.hashes()[from..to + pattern.len()];
            let mut nearest: Option<usize> = None;
            matcher.run(window, |end, matched| {
                if matched == pattern.len() {
                    let at = from + end - matched;
                    let is_nearer = |other| wanted.abs_diff(at) <= wanted.abs_diff(other);
                    if nearest.is_none_or(is_nearer) {
                        nearest = Some(at);
                    }
                }
            });
            match nearest {
                Some(at) if self.is_at(pattern, at) => return Found::At(at),
                _ if from == first && to == last => return Found::Nowhere,
                _ => reach = reach.saturating_mul(4),
            }
        }
    }

    fn is_at(&self, pattern: &[TextLine<'_>], at: usize) -> bool {
        let mut lines = pattern.iter().zip(at..);
        lines.all(|(line, index)| self.lines.get(index) == Some(*line))
    }

    fn spend(&mut self, lines: usize) -> bool {
        let left = self.budget.checked_sub(lines);
        self.budget = left.unwrap_or(0);
        left.is_some()
    }
}

/// Finds a sequence in another in linear time, as Knuth, Morris and Pratt do.
pub(super) struct Matcher<'a> {
    pattern: &'a [u64],
    /// For each beginning of the pattern, the longest shorter one that it ends
    /// with.
    borders: Vec<usize>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(pattern: &'a [u64]) -> Self {
        let mut borders = Vec::with_capacity(pattern.len());
        let mut matched = 0;
        for (index, hash) in pattern.iter().enumerate() {
            while matched > 0 && pattern[matched] != *hash {
                matched = borders[matched - 1];
            }
            if index > 0 && pattern[matched] == *hash {
                matched += 1;
            }
            borders.push(matched);
        }
        Self { pattern, borders }
    }

    /// Tells behind each element how much of the pattern ends there.
    pub(super) fn run(&self, text: &[u64], mut each: impl FnMut(usize, usize)) {
        let mut matched = 0;
        for (index, hash) in text.iter().enumerate() {
            while matched > 0 && self.pattern.get(matched) != Some(hash) {
                matched = self.borders[matched - 1];
            }
            if self.pattern.get(matched) == Some(hash) {
                matched += 1;
            }
            each(index + 1, matched);
        }
    }
}
