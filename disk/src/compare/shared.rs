use std::ops::Range;

use crate::{
    Disk, DiskError,
    budget::Budget,
    ext4::{Inode, RunPlace},
    image::{Location, MappedRange, MappedRanges},
};

/// More places that differ are not remembered: then all counts as different.
const MOST_RANGES: usize = 1 << 19;

/// A file in more pieces is read instead.
const MOST_RUNS: usize = 1 << 16;

/// Which blocks two disks have in common: the same bytes of the same file.
#[derive(Debug)]
pub(super) struct Shared {
    /// Where they have not, in bytes from the beginning of the file system, in
    /// order and apart from each other.
    differing: Vec<Range<u64>>,
}

impl Shared {
    /// Asks both images where their bytes are. None: there is no telling.
    ///
    /// # Errors
    /// [`DiskError::Limit`], if it takes too long.
    pub(super) fn find(
        old: &Disk,
        new: &Disk,
        budget: &mut Budget,
    ) -> Result<Option<Self>, DiskError> {
        let length = old.length.min(new.length);
        let mut shared = Self {
            differing: Vec::new(),
        };
        let mut pieces = Pieces {
            old: Stream::new(old, length),
            new: Stream::new(new, length),
            position: 0,
        };
        while let Some(piece) = pieces.next() {
            budget.check_time(b"")?;
            let Some((range, differs)) = piece else {
                return Ok(None);
            };
            if differs && !shared.add(range) {
                return Ok(None);
            }
        }
        // What a journal holds is elsewhere than where it belongs.
        let replayed = old.ext4.replayed().chain(new.ext4.replayed());
        shared.differing.extend(replayed);
        shared.differing.push(length..u64::MAX);
        if shared.differing.len() > MOST_RANGES {
            return Ok(None);
        }
        shared.merge();
        budget.keep(shared.differing.len() * size_of::<Range<u64>>(), b"")?;
        Ok(Some(shared))
    }

    /// Whether two inodes have the same contents for sure. They may have if
    /// not.
    pub(super) fn is_same(&self, old: (&Disk, &Inode), new: (&Disk, &Inode)) -> bool {
        if old.1.size != new.1.size {
            return false;
        }
        let mut news = new.0.ext4.runs(new.1);
        for old in old.0.ext4.runs(old.1).take(MOST_RUNS) {
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
        // Were there too many of them, the other side has more too.
        news.next().is_none()
    }

    /// Whether any of these bytes may differ.
    fn differs(&self, range: Range<u64>) -> bool {
        let after = self
            .differing
            .partition_point(|differing| differing.end <= range.start);
        let next = self.differing.get(after);
        next.is_some_and(|differing| differing.start < range.end)
    }

    /// False: there are too many.
    fn add(&mut self, range: Range<u64>) -> bool {
        match self.differing.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.differing.push(range),
        }
        self.differing.len() <= MOST_RANGES
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

/// Goes through two images at once.
struct Pieces<'d> {
    old: Stream<'d>,
    new: Stream<'d>,
    position: u64,
}

impl Pieces<'_> {
    /// The next piece, and whether it differs. An inner none: an image cannot
    /// tell.
    fn next(&mut self) -> Option<Option<(Range<u64>, bool)>> {
        let (old, new) = match (self.old.peek(), self.new.peek()) {
            (Some(Some(old)), Some(Some(new))) => (old, new),
            (None, None) => return None,
            _ => return Some(None),
        };
        let length = old.length.min(new.length);
        let end = self.position.saturating_add(length);
        let piece = (self.position..end, old.place != new.place);
        self.position = end;
        self.old.advance(length);
        self.new.advance(length);
        Some(Some(piece))
    }
}

struct Stream<'d> {
    runs: MappedRanges<'d>,
    run: Option<MappedRange>,
}

impl<'d> Stream<'d> {
    fn new(disk: &'d Disk, length: u64) -> Self {
        let end = disk.start.saturating_add(length);
        Self {
            runs: disk.image.runs(disk.start..end),
            run: None,
        }
    }

    /// What is left of the first run. An inner none: it cannot be told.
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
                place: beyond(run.place, count),
            })
        });
    }
}

fn beyond(place: Location, count: u64) -> Location {
    match place {
        Location::Zero => Location::Zero,
        Location::File { file, offset } => Location::File {
            file,
            offset: offset.saturating_add(count),
        },
        Location::Packed {
            file,
            offset,
            within,
        } => Location::Packed {
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
            let mut shared = Shared { differing: differing.clone() };
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
            for place in [
                Location::Zero,
                Location::File { file, offset: 7 },
                Location::Packed { file, offset: 7, within: 9 },
            ] {
                let twice = beyond(beyond(place, first), second);
                prop_assert_eq!(twice, beyond(place, first + second));
            }
        }
    }
}
