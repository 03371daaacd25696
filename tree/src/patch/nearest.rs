//! Which place of a file is most like a hunk that does not fit.

use super::{
    line::TextLine,
    mismatch::Nearest,
    search::{Anchor, Matcher, Search},
};

/// The place where most lines of the pattern's beginning or end are, and the
/// first line that is another there. Of places that are as good it is the one
/// that is nearest to the wanted one.
pub(super) fn nearest(
    search: &Search<'_>,
    pattern: &[TextLine<'_>],
    wanted: usize,
    anchor: Anchor,
) -> Option<Nearest> {
    let hashes: Vec<u64> = pattern.iter().map(|line| search.hash(*line)).collect();
    let begin = longest(&hashes, search.hashes(), wanted);
    let reverse = |hashes: &[u64]| hashes.iter().rev().copied().collect::<Vec<_>>();
    let lines = search.lines();
    let last = lines.len().saturating_sub(wanted + pattern.len());
    let end = longest(&reverse(&hashes), &reverse(search.hashes()), last);
    let (index, expected) = if begin.matched == pattern.len() && anchor == Anchor::End {
        (begin.at + begin.matched, None)
    } else if begin.matched == pattern.len() {
        // All lines are there, but not where they may be.
        let mut pairs = (0..).zip(pattern);
        let (index, line) =
            pairs.find(|(index, line)| lines.get(wanted + index) != Some(**line))?;
        (wanted + index, Some(line))
    } else if begin.matched >= end.matched {
        let at = if begin.matched == 0 { wanted } else { begin.at };
        (at + begin.matched, pattern.get(begin.matched))
    } else {
        // Both count from the end.
        let index = lines.len().checked_sub(end.at + end.matched + 1);
        let line = pattern.len().checked_sub(end.matched + 1)?;
        (index.unwrap_or(0), pattern.get(line))
    };
    Some(Nearest::new(
        index.min(lines.len()),
        expected.copied(),
        lines.get(index),
    ))
}

struct Longest {
    at: usize,
    matched: usize,
}

/// Where most of the pattern's beginning is.
fn longest(pattern: &[u64], text: &[u64], wanted: usize) -> Longest {
    let mut longest = Longest {
        at: wanted,
        matched: 0,
    };
    Matcher::new(pattern).run(text, |end, matched| {
        let at = end - matched;
        let is_nearer = wanted.abs_diff(at) < wanted.abs_diff(longest.at);
        if matched > longest.matched || matched == longest.matched && matched > 0 && is_nearer {
            longest = Longest { at, matched };
        }
    });
    longest
}
