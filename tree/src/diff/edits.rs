//! Which lines differ between two texts.
//!
//! This is Myers's greedy algorithm ("An O(ND) Difference Algorithm and Its
//! Variations"), after the lines that only one of the texts has are set aside.
//! It finds the shortest answer up to a number of edits, then settles for what
//! it has, and goes on from there. So time is linear in the lines whatever they
//! are, and there is no recursion.
//!
//! It is our own because the crates for it do not promise that. For two texts
//! of 100,000 lines of which every other differs, the histogram of `imara-diff`
//! took 44 seconds; its Myers is fast, but recurses and uses raw pointers.
//! `similar` was not done after 25 seconds with a million random lines, and can
//! only be held to a time of the clock, so that a busy machine changes the diff.

use std::{collections::HashMap, ops::Range};

use crate::patch::{Lines, TextLine};

/// How many steps all of it may take, roughly a third of them.
const STEPS: usize = 30_000_000;

/// How many edits are looked for at once, at least and at most. The most decides
/// what memory it takes: four bytes for its square.
const MIN_EDITS: usize = 64;
const MAX_EDITS: usize = 2048;

/// Lines of the old text, and the lines that stand in their place in the new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// The edits that make the new text of the old one, in order, with at least one
/// common line between each two.
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

/// The lines that stay, as pairs of their indices, in order.
fn common_lines<'a>(old: &Lines<'a>, new: &Lines<'a>) -> Vec<(usize, usize)> {
    let mut numbers = HashMap::new();
    let (old, new) = (number(old, &mut numbers), number(new, &mut numbers));
    let different = numbers.len();
    drop(numbers);

    let first = same_count(old.iter(), new.iter());
    let (old_rest, new_rest) = (&old[first..], &new[first..]);
    let last = same_count(old_rest.iter().rev(), new_rest.iter().rev());
    let old_middle = &old_rest[..old_rest.len() - last];
    let new_middle = &new_rest[..new_rest.len() - last];

    let old_shared = Shared::new(old_middle, new_middle, different);
    let new_shared = Shared::new(new_middle, old_middle, different);
    let middle = Walk::new(&old_shared.numbers, &new_shared.numbers).run();

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

/// A number for each line. Equal lines have equal numbers.
fn number<'a>(lines: &Lines<'a>, numbers: &mut HashMap<TextLine<'a>, u32>) -> Vec<u32> {
    lines
        .iter()
        .map(|line| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(line).or_insert(next)
        })
        .collect()
}

fn same_count<'a>(old: impl Iterator<Item = &'a u32>, new: impl Iterator<Item = &'a u32>) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).count()
}

/// The lines of a text that are also in the other.
struct Shared {
    numbers: Vec<u32>,
    indices: Vec<usize>,
}

impl Shared {
    fn new(lines: &[u32], others: &[u32], different: usize) -> Self {
        let mut is_shared = vec![false; different];
        for number in others {
            is_shared[*number as usize] = true;
        }
        let (indices, numbers) = lines
            .iter()
            .enumerate()
            .filter(|(_, number)| is_shared[**number as usize])
            .unzip();
        Self { numbers, indices }
    }
}

/// A way through both texts, from their beginnings to their ends: a step takes a
/// line of the old one, or of the new one, or one that is common to both.
struct Walk<'a> {
    old: &'a [u32],
    new: &'a [u32],
    max_edits: usize,
    /// How far into the old text one gets: a row for each number of edits, and
    /// in row `d` an entry for each number of these that are removals, 0 to `d`.
    reached: Vec<Option<u32>>,
    common: Vec<(usize, usize)>,
}

impl<'a> Walk<'a> {
    fn new(old: &'a [u32], new: &'a [u32]) -> Self {
        let lines = old.len() + new.len();
        Self {
            old,
            new,
            max_edits: (STEPS / lines.max(1)).clamp(MIN_EDITS, MAX_EDITS),
            reached: Vec::new(),
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

    /// Goes on until the end or as far as the edits allow, notes what is common
    /// on the way, and tells how far it got.
    fn advance(&mut self, from: (usize, usize)) -> (usize, usize) {
        let (old, new) = (&self.old[from.0..], &self.new[from.1..]);
        let area = Area { old, new };
        self.reached.clear();
        let mut edits = 0;
        let (removals, old_at) = loop {
            let row = row_start(edits);
            let mut best: Option<(usize, usize)> = None;
            for removals in 0..=edits {
                let reached = area
                    .before_common(&self.reached, edits, removals)
                    .map(|at| at + area.common(at, new_at(at, edits, removals)));
                debug_assert_eq!(self.reached.len(), row + removals);
                self.reached
                    .push(reached.and_then(|at| u32::try_from(at).ok()));
                let Some(at) = reached else { continue };
                // How far in both together, up to what is the same for all.
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
        self.note(&area, from, edits, removals);
        (from.0 + old_at, from.1 + new_at(old_at, edits, removals))
    }

    /// Goes the way back, and notes what is common on it.
    fn note(&mut self, area: &Area<'_>, from: (usize, usize), edits: usize, removals: usize) {
        let noted = self.common.len();
        let (mut edits, mut removals) = (edits, removals);
        loop {
            let end = self.reached[row_start(edits) + removals].map_or(0, |at| at as usize);
            let begin = area
                .before_common(&self.reached, edits, removals)
                .unwrap_or(end);
            let new_begin = new_at(begin, edits, removals);
            let run = (0..end - begin).rev();
            self.common
                .extend(run.map(|index| (from.0 + begin + index, from.1 + new_begin + index)));
            if edits == 0 {
                break;
            }
            if area.is_removal(&self.reached, edits, removals) {
                removals -= 1;
            }
            edits -= 1;
        }
        self.common[noted..].reverse();
    }
}

/// What of both texts is still before a walk.
struct Area<'a> {
    old: &'a [u32],
    new: &'a [u32],
}

impl Area<'_> {
    /// Where in the old text one is after the last edit, with the common lines
    /// behind it still to come; `None` if it would be beyond an end.
    fn before_common(
        &self,
        reached: &[Option<u32>],
        edits: usize,
        removals: usize,
    ) -> Option<usize> {
        if edits == 0 {
            return Some(0);
        }
        let (by_removal, by_addition) = self.ways(reached, edits, removals);
        by_removal.max(by_addition)
    }

    fn is_removal(&self, reached: &[Option<u32>], edits: usize, removals: usize) -> bool {
        let (by_removal, by_addition) = self.ways(reached, edits, removals);
        by_removal > by_addition
    }

    fn ways(
        &self,
        reached: &[Option<u32>],
        edits: usize,
        removals: usize,
    ) -> (Option<usize>, Option<usize>) {
        let row = row_start(edits - 1);
        let before = |removals: usize| reached[row + removals].map(|at| at as usize);
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
        same_count(self.old[old_at..].iter(), self.new[new_at..].iter())
    }
}

fn row_start(edits: usize) -> usize {
    edits * (edits + 1) / 2
}

/// Where in the new text one is: every addition takes it further than the old
/// one, and every removal less far.
fn new_at(old_at: usize, edits: usize, removals: usize) -> usize {
    old_at + edits - 2 * removals
}
