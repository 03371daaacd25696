use std::ops::Range;

use crate::{
    Disk, DiskError,
    budget::Budget,
    ext4::{Inode, RunPlace},
    image::{Location, MappedRange, MappedRanges},
};

/// Maximum number of differing ranges. With more, no blocks count as shared.
const MAX_RANGES: usize = 1 << 19;

/// A file with more runs is read instead.
const MAX_RUNS: usize = 1 << 16;

/// The blocks that two disks share: the same bytes of the same image file.
#[derive(Debug)]
pub(super) struct SharedBlocks {
    /// The ranges that are not shared, as byte offsets in the file system,
    /// sorted and disjoint.
    differing: Vec<Range<u64>>,
}

impl SharedBlocks {
    /// Determines the shared blocks from the mappings of both images. Returns
    /// `None` if that is not possible.
    ///
    /// # Errors
    /// [`DiskError::Limit`] if it takes too long.
    pub(super) fn find(
        old: &Disk,
        new: &Disk,
        budget: &mut Budget,
    ) -> Result<Option<Self>, DiskError> {
        let length = old.length.min(new.length);
        let mut shared = Self {
            differing: Vec::new(),
        };
        let mut pairs = RangePairs {
            old: RangeCursor::new(old, length),
            new: RangeCursor::new(new, length),
            position: 0,
        };
        while let Some(pair) = pairs.next() {
            budget.check_time(b"")?;
            let Some((range, differs)) = pair else {
                return Ok(None);
            };
            if differs && !shared.add(range) {
                return Ok(None);
            }
        }
        // Blocks replayed from a journal are stored elsewhere.
        let replayed = old.ext4.replayed_ranges().chain(new.ext4.replayed_ranges());
        shared.differing.extend(replayed);
        shared.differing.push(length..u64::MAX);
        if shared.differing.len() > MAX_RANGES {
            return Ok(None);
        }
        shared.merge();
        budget.reserve(shared.differing.len() * size_of::<Range<u64>>(), b"")?;
        Ok(Some(shared))
    }

    /// Returns whether two inodes are certain to have the same contents. If
    /// false, they may still have.
    pub(super) fn is_same(&self, old: (&Disk, &Inode), new: (&Disk, &Inode)) -> bool {
        if old.1.size != new.1.size {
            return false;
        }
        let mut news = new.0.ext4.runs(new.1);
        for old in old.0.ext4.runs(old.1).take(MAX_RUNS) {
            let (Ok(old), Some(Ok(new))) = (old, news.next()) else {
                return false;
            };
            if old.length != new.length {
                return false;
            }
            match (old.place, new.place) {
                (RunPlace::Data(first), RunPlace::Data(second)) if first == second => {
                    if self.differs(first..first.saturating_add(old.length)) {
                        return false;
                    }
                }
                (
                    RunPlace::Hole | RunPlace::Unwritten(_),
                    RunPlace::Hole | RunPlace::Unwritten(_),
                ) => {}
                _ => return false,
            }
        }
        // If there were too many runs, the other side has more runs left too.
        news.next().is_none()
    }

    /// Returns whether any of these bytes may differ.
    fn differs(&self, range: Range<u64>) -> bool {
        let after = self
            .differing
            .partition_point(|differing| differing.end <= range.start);
        let next = self.differing.get(after);
        next.is_some_and(|differing| differing.start < range.end)
    }

    /// Adds a differing range. Returns false if there are too many.
    fn add(&mut self, range: Range<u64>) -> bool {
        match self.differing.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.differing.push(range),
        }
        self.differing.len() <= MAX_RANGES
    }

    fn merge(&mut self) {
        self.differing.sort_by_key(|range| range.start);
        self.differing.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
    }
}

/// Iterates over the mappings of two images in parallel.
struct RangePairs<'d> {
    old: RangeCursor<'d>,
    new: RangeCursor<'d>,
    position: u64,
}

impl RangePairs<'_> {
    /// Returns the next range and whether it differs. The inner `None` means
    /// that an image's mapping cannot be read.
    fn next(&mut self) -> Option<Option<(Range<u64>, bool)>> {
        let (old, new) = match (self.old.peek(), self.new.peek()) {
            (Some(Some(old)), Some(Some(new))) => (old, new),
            (None, None) => return None,
            _ => return Some(None),
        };
        let length = old.length.min(new.length);
        let end = self.position.saturating_add(length);
        let pair = (self.position..end, old.location != new.location);
        self.position = end;
        self.old.advance(length);
        self.new.advance(length);
        Some(Some(pair))
    }
}

struct RangeCursor<'d> {
    runs: MappedRanges<'d>,
    run: Option<MappedRange>,
}

impl<'d> RangeCursor<'d> {
    fn new(disk: &'d Disk, length: u64) -> Self {
        let end = disk.start.saturating_add(length);
        Self {
            runs: disk.image.mapped_ranges(disk.start..end),
            run: None,
        }
    }

    /// Returns what is left of the current range. The inner `None` means that
    /// the mapping cannot be read.
    fn peek(&mut self) -> Option<Option<MappedRange>> {
        if self.run.is_none() {
            match self.runs.next()? {
                Ok(run) => self.run = Some(run),
                Err(_) => return Some(None),
            }
        }
        Some(self.run)
    }

    fn advance(&mut self, count: u64) {
        self.run = self.run.and_then(|run| {
            Some(MappedRange {
                offset: run.offset.saturating_add(count),
                length: run.length.checked_sub(count).filter(|left| *left > 0)?,
                location: advance_location(run.location, count),
            })
        });
    }
}

fn advance_location(location: Location, count: u64) -> Location {
    match location {
        Location::Zero => Location::Zero,
        Location::File { file, offset } => Location::File {
            file,
            offset: offset.saturating_add(count),
        },
        Location::Compressed {
            file,
            offset,
            within,
        } => Location::Compressed {
            file,
            offset,
            within: within.saturating_add(count),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::image::FileId;

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        let range = (0..300_u64, 1..20_u64).prop_map(|(start, length)| start..start + length);
        proptest::collection::vec(range, 0..20)
    }

    proptest! {
        #[test]
        fn ranges_differ_where_any_of_those_that_were_added_is(
            differing in ranges(),
            asked in ranges(),
        ) {
            let mut shared = SharedBlocks { differing: differing.clone() };
            shared.merge();
            for asked in asked {
                let expected = asked
                    .clone()
                    .any(|byte| differing.iter().any(|range| range.contains(&byte)));
                prop_assert_eq!(shared.differs(asked), expected);
            }
            let are_apart = shared.differing.windows(2).all(|pair| pair[0].end < pair[1].start);
            prop_assert!(are_apart, "{:?}", shared.differing);
        }

        #[test]
        fn a_place_goes_on_byte_by_byte(first in 0..1000_u64, second in 0..1000_u64) {
            let file = FileId { device: 1, inode: 2 };
            for location in [
                Location::Zero,
                Location::File { file, offset: 7 },
                Location::Compressed { file, offset: 7, within: 9 },
            ] {
                let twice = advance_location(advance_location(location, first), second);
                prop_assert_eq!(twice, advance_location(location, first + second));
            }
        }
    }
}
