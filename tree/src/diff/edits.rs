//! Finds the lines that differ between two texts.
//!
//! This is Myers's greedy algorithm ("An O(ND) Difference Algorithm and Its
//! Variations"), without the lines that only one of the texts has. It finds the
//! shortest edit script up to a number of edits, then keeps the best one so far
//! and continues from there. So the time is linear in the number of lines
//! whatever they contain, and there is no recursion.
//!
//! Existing crates do not promise that. For two texts of 100,000 lines of which
//! every other differs, the histogram algorithm of `imara-diff` took 44
//! seconds; its Myers is fast, but recurses and uses raw pointers. `similar`
//! had not finished after 25 seconds with a million random lines. Its only
//! limit is a deadline, so the diff would depend on how busy the machine is.

use std::{collections::HashMap, ops::Range};

use crate::patch::{Lines, TextLine};

/// The step budget of the whole search. The real number of steps can be about
/// three times as high.
const STEP_BUDGET: usize = 30_000_000;

/// The bounds of the number of edits per round. The table of a round takes four
/// bytes times the square of that number.
const MIN_EDITS: usize = 64;
const MAX_EDITS: usize = 2048;

/// Lines of the old text, and the lines that replace them in the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// Returns the edits that turn the old text into the new one, in order, with at
/// least one common line between any two.
pub(super) fn edits<'a>(old: &Lines<'a>, new: &Lines<'a>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut done = (0, 0);
    let end = (old.len(), new.len());
    for common in common_lines(old, new).into_iter().chain([end]) {
        if common != done {
            edits.push(Edit {
                old: done.0..common.0,
                new: done.1..common.1,
            });
        }
        done = (common.0 + 1, common.1 + 1);
    }
    edits
}

/// Returns the common lines as pairs of indices, in order.
fn common_lines<'a>(old: &Lines<'a>, new: &Lines<'a>) -> Vec<(usize, usize)> {
    let mut ids = HashMap::new();
    let (old, new) = (line_ids(old, &mut ids), line_ids(new, &mut ids));
    let id_count = ids.len();
    drop(ids);

    let first = equal_count(old.iter(), new.iter());
    let (old_rest, new_rest) = (&old[first..], &new[first..]);
    let last = equal_count(old_rest.iter().rev(), new_rest.iter().rev());
    let old_middle = &old_rest[..old_rest.len() - last];
    let new_middle = &new_rest[..new_rest.len() - last];

    let old_shared = SharedLines::new(old_middle, new_middle, id_count);
    let new_shared = SharedLines::new(new_middle, old_middle, id_count);
    let middle = EditSearch::new(&old_shared.ids, &new_shared.ids).run();

    let mut common: Vec<_> = (0..first).map(|index| (index, index)).collect();
    common.extend(middle.into_iter().map(|(old_index, new_index)| {
        (
            first + old_shared.indices[old_index],
            first + new_shared.indices[new_index],
        )
    }));
    common.extend((0..last).map(|index| (old.len() - last + index, new.len() - last + index)));
    common
}

/// Assigns each line an ID. Equal lines have equal IDs.
fn line_ids<'a>(lines: &Lines<'a>, ids: &mut HashMap<TextLine<'a>, u32>) -> Vec<u32> {
    lines
        .iter()
        .map(|line| {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            *ids.entry(line).or_insert(next)
        })
        .collect()
}

fn equal_count<'a>(
    old: impl Iterator<Item = &'a u32>,
    new: impl Iterator<Item = &'a u32>,
) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).count()
}

/// The lines of a text that the other text has too.
struct SharedLines {
    ids: Vec<u32>,
    indices: Vec<usize>,
}

impl SharedLines {
    fn new(lines: &[u32], others: &[u32], id_count: usize) -> Self {
        let mut is_shared = vec![false; id_count];
        for id in others {
            is_shared[*id as usize] = true;
        }
        let (indices, ids) = lines
            .iter()
            .enumerate()
            .filter(|(_, id)| is_shared[**id as usize])
            .unzip();
        Self { ids, indices }
    }
}

/// The search for a path through the edit graph of both texts. A step takes a
/// line of the old text (removal), of the new one (addition), or of both.
struct EditSearch<'a> {
    old: &'a [u32],
    new: &'a [u32],
    max_edits: usize,
    /// The furthest index in the old text: a row for each number of edits `d`,
    /// with an entry for each number of removals among them, 0 to `d`.
    furthest: Vec<Option<u32>>,
    common: Vec<(usize, usize)>,
}

impl<'a> EditSearch<'a> {
    fn new(old: &'a [u32], new: &'a [u32]) -> Self {
        let lines = old.len() + new.len();
        Self {
            old,
            new,
            max_edits: (STEP_BUDGET / lines.max(1)).clamp(MIN_EDITS, MAX_EDITS),
            furthest: Vec::new(),
            common: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<(usize, usize)> {
        let mut from = (0, 0);
        while from.0 < self.old.len() && from.1 < self.new.len() {
            from = self.advance(from);
        }
        self.common
    }

    /// Advances to the end, or as far as `max_edits` allows. Adds the common
    /// lines on the path, and returns the end of the path.
    fn advance(&mut self, from: (usize, usize)) -> (usize, usize) {
        let (old, new) = (&self.old[from.0..], &self.new[from.1..]);
        let rest = Rest { old, new };
        self.furthest.clear();
        let mut edits = 0;
        let (removals, old_at) = loop {
            let row = row_start(edits);
            let mut best: Option<(usize, usize)> = None;
            for removals in 0..=edits {
                let furthest = rest
                    .before_common(&self.furthest, edits, removals)
                    .map(|at| at + rest.common(at, new_at(at, edits, removals)));
                debug_assert_eq!(self.furthest.len(), row + removals);
                self.furthest
                    .push(furthest.and_then(|at| u32::try_from(at).ok()));
                let Some(at) = furthest else { continue };
                // The sum of both indices, minus what is equal for all
                // candidates.
                let distance = |(removals, at): (usize, usize)| 2 * at + edits - 2 * removals;
                if best.is_none_or(|best| distance((removals, at)) > distance(best)) {
                    best = Some((removals, at));
                }
            }
            let Some(best) = best else {
                return (self.old.len(), self.new.len());
            };
            let is_end = best.1 == old.len() && new_at(best.1, edits, best.0) == new.len();
            if is_end || edits == self.max_edits {
                break best;
            }
            edits += 1;
        };
        self.backtrack(&rest, from, edits, removals);
        (from.0 + old_at, from.1 + new_at(old_at, edits, removals))
    }

    /// Follows the path back to `from`, and adds its common lines.
    fn backtrack(&mut self, rest: &Rest<'_>, from: (usize, usize), edits: usize, removals: usize) {
        let first = self.common.len();
        let (mut edits, mut removals) = (edits, removals);
        loop {
            let end = self.furthest[row_start(edits) + removals].map_or(0, |at| at as usize);
            let begin = rest
                .before_common(&self.furthest, edits, removals)
                .unwrap_or(end);
            let new_begin = new_at(begin, edits, removals);
            let run = (0..end - begin).rev();
            self.common
                .extend(run.map(|index| (from.0 + begin + index, from.1 + new_begin + index)));
            if edits == 0 {
                break;
            }
            if rest.is_removal(&self.furthest, edits, removals) {
                removals -= 1;
            }
            edits -= 1;
        }
        self.common[first..].reverse();
    }
}

/// The part of both texts that the search has not reached yet.
struct Rest<'a> {
    old: &'a [u32],
    new: &'a [u32],
}

impl Rest<'_> {
    /// Returns the index in the old text after the last edit and before the
    /// common lines that follow it, or `None` if it would be beyond the end of
    /// a text.
    fn before_common(
        &self,
        furthest: &[Option<u32>],
        edits: usize,
        removals: usize,
    ) -> Option<usize> {
        if edits == 0 {
            return Some(0);
        }
        let (by_removal, by_addition) = self.predecessors(furthest, edits, removals);
        by_removal.max(by_addition)
    }

    fn is_removal(&self, furthest: &[Option<u32>], edits: usize, removals: usize) -> bool {
        let (by_removal, by_addition) = self.predecessors(furthest, edits, removals);
        by_removal > by_addition
    }

    fn predecessors(
        &self,
        furthest: &[Option<u32>],
        edits: usize,
        removals: usize,
    ) -> (Option<usize>, Option<usize>) {
        let row = row_start(edits - 1);
        let before = |removals: usize| furthest[row + removals].map(|at| at as usize);
        let by_removal = (removals > 0)
            .then(|| before(removals - 1))
            .flatten()
            .map(|at| at + 1)
            .filter(|at| *at <= self.old.len());
        let by_addition = (removals < edits)
            .then(|| before(removals))
            .flatten()
            .filter(|at| new_at(*at, edits, removals) <= self.new.len());
        (by_removal, by_addition)
    }

    fn common(&self, old_at: usize, new_at: usize) -> usize {
        equal_count(self.old[old_at..].iter(), self.new[new_at..].iter())
    }
}

fn row_start(edits: usize) -> usize {
    edits * (edits + 1) / 2
}

/// Returns the index in the new text that belongs to an index in the old one:
/// additions move it forward, removals back.
fn new_at(old_at: usize, edits: usize, removals: usize) -> usize {
    old_at + edits - 2 * removals
}
