//! Finds lines in a file, in bounded time whatever the file contains.

use std::{
    cell::OnceCell,
    hash::{BuildHasher, RandomState},
};

use super::line::{Lines, TextLine};

/// The number of lines that may be compared for all hunks of a file together.
const LINE_BUDGET: usize = 1 << 26;

/// How far from the expected place the first search goes. Each further one goes
/// four times as far.
const INITIAL_RADIUS: usize = 64;

/// Where in the file the lines must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    End,
    Both,
    Anywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchResult {
    At(usize),
    NotFound,
    LimitReached,
}

/// Searches lines in one file.
pub(super) struct Search<'a> {
    lines: &'a Lines<'a>,
    /// Keys the hashes of lines, so that nobody can construct collisions.
    hasher: RandomState,
    hashes: OnceCell<Vec<u64>>,
    budget: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(lines: &'a Lines<'a>) -> Self {
        Self {
            lines,
            hasher: RandomState::new(),
            hashes: OnceCell::new(),
            budget: LINE_BUDGET,
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
        self.hasher.hash_one(line)
    }

    /// Finds the place of the pattern closest to the expected one, at
    /// `earliest` or after it. Of two equally close places it returns the later
    /// one.
    pub(super) fn find(
        &mut self,
        pattern: &[TextLine<'_>],
        expected: usize,
        earliest: usize,
        anchor: Anchor,
    ) -> SearchResult {
        let Some(last) = self.lines.len().checked_sub(pattern.len()) else {
            return SearchResult::NotFound;
        };
        if last < earliest {
            return SearchResult::NotFound;
        }
        if !self.spend(pattern.len()) {
            return SearchResult::LimitReached;
        }
        let fixed = match anchor {
            Anchor::Start => Some(0),
            Anchor::End => Some(last),
            Anchor::Both if last == 0 => Some(0),
            Anchor::Both => return SearchResult::NotFound,
            Anchor::Anywhere => None,
        };
        if let Some(fixed) = fixed {
            return if fixed >= earliest && self.is_at(pattern, fixed) {
                SearchResult::At(fixed)
            } else {
                SearchResult::NotFound
            };
        }
        if (earliest..=last).contains(&expected) && self.is_at(pattern, expected) {
            return SearchResult::At(expected);
        }
        // An empty pattern matches everywhere: accept only the expected place.
        if pattern.is_empty() {
            return SearchResult::NotFound;
        }
        self.find_near(pattern, expected.clamp(earliest, last), earliest, last)
    }

    fn find_near(
        &mut self,
        pattern: &[TextLine<'_>],
        expected: usize,
        earliest: usize,
        last: usize,
    ) -> SearchResult {
        let pattern_hashes: Vec<u64> = pattern.iter().map(|line| self.hash(*line)).collect();
        let matcher = KmpMatcher::new(&pattern_hashes);
        let mut radius = INITIAL_RADIUS;
        loop {
            let from = expected.saturating_sub(radius).max(earliest);
            let to = expected.saturating_add(radius).min(last);
            if !self.spend(to - from + pattern.len()) {
                return SearchResult::LimitReached;
            }
            let window = &self.hashes()[from..to + pattern.len()];
            let mut nearest: Option<usize> = None;
            matcher.run(window, |end, matched| {
                if matched == pattern.len() {
                    let at = from + end - matched;
                    let is_nearer = |other| expected.abs_diff(at) <= expected.abs_diff(other);
                    if nearest.is_none_or(is_nearer) {
                        nearest = Some(at);
                    }
                }
            });
            match nearest {
                Some(at) if self.is_at(pattern, at) => return SearchResult::At(at),
                _ if from == earliest && to == last => return SearchResult::NotFound,
                _ => radius = radius.saturating_mul(4),
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

/// Finds a sequence in another one in linear time (Knuth–Morris–Pratt).
pub(super) struct KmpMatcher<'a> {
    pattern: &'a [u64],
    /// For each prefix of the pattern, the length of the longest shorter prefix
    /// that is also its suffix.
    borders: Vec<usize>,
}

impl<'a> KmpMatcher<'a> {
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

    /// Calls `each` after each element with the number of elements so far and
    /// the length of the pattern's prefix that ends there.
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
