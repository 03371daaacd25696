//! Finds the place in a file that is most similar to a hunk.

use super::{
    line::TextLine,
    mismatch::NearestMatch,
    search::{Anchor, KmpMatcher, Search},
};

/// Returns the place that has the most lines of the pattern's start or end, and
/// the first line there that differs. Of equally good places it returns the one
/// that is closest to the expected one.
pub(super) fn nearest(
    search: &Search<'_>,
    pattern: &[TextLine<'_>],
    wanted: usize,
    anchor: Anchor,
) -> Option<NearestMatch> {
    let hashes: Vec<u64> = pattern.iter().map(|line| search.hash(*line)).collect();
    let begin = longest(&hashes, search.hashes(), wanted);
    let reverse = |hashes: &[u64]| hashes.iter().rev().copied().collect::<Vec<_>>();
    let lines = search.lines();
    let last = lines.len().saturating_sub(wanted + pattern.len());
    let end = longest(&reverse(&hashes), &reverse(search.hashes()), last);
    let (index, expected) = if begin.matched == pattern.len() && anchor == Anchor::End {
        (begin.at + begin.matched, None)
    } else if begin.matched == pattern.len() {
        // All lines exist, but not where they are allowed.
        let mut pairs = (0..).zip(pattern);
        let (index, line) =
            pairs.find(|(index, line)| lines.get(wanted + index) != Some(**line))?;
        (wanted + index, Some(line))
    } else if begin.matched >= end.matched {
        let at = if begin.matched == 0 { wanted } else { begin.at };
        (at + begin.matched, pattern.get(begin.matched))
    } else {
        // Both indices count from the end.
        let index = lines.len().checked_sub(end.at + end.matched + 1);
        let line = pattern.len().checked_sub(end.matched + 1)?;
        (index.unwrap_or(0), pattern.get(line))
    };
    Some(NearestMatch::new(
        index.min(lines.len()),
        expected.copied(),
        lines.get(index),
    ))
}

struct LongestMatch {
    at: usize,
    matched: usize,
}

/// Returns the place that has the longest prefix of the pattern.
fn longest(pattern: &[u64], text: &[u64], wanted: usize) -> LongestMatch {
    let mut longest = LongestMatch {
        at: wanted,
        matched: 0,
    };
    KmpMatcher::new(pattern).run(text, |end, matched| {
        let at = end - matched;
        let is_nearer = wanted.abs_diff(at) < wanted.abs_diff(longest.at);
        if matched > longest.matched || matched == longest.matched && matched > 0 && is_nearer {
            longest = LongestMatch { at, matched };
        }
    });
    longest
}
