use alloc::vec::Vec;

use vmcell_wire::files::ChangeKind;

/// An event of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathEvent {
    /// The entry is new; the path was free.
    Created,
    /// An entry was renamed to this path; it may have replaced another one.
    MovedHere,
    Modified,
    Metadata,
    Removed,
}

/// Changes that were not reported yet.
///
/// Each path is reported once, by its state before and now:
///
/// | before   | now           | reported as                   |
/// |----------|---------------|-------------------------------|
/// | absent   | exists        | `Created`                     |
/// | absent   | absent        | nothing                       |
/// | exists   | absent        | `Removed`                     |
/// | exists   | changed       | `Modified` or `Metadata`      |
/// | exists   | another file  | `Modified`                    |
/// | exists   | another entry, and one of both is a directory | `Removed`, `Created` |
#[derive(Default)]
pub(super) struct PendingChanges {
    /// In the order of the first event of each path.
    changes: Vec<(Vec<u8>, PathChange)>,
    /// Indexes of `changes`, in the order of their paths.
    by_path: Vec<usize>,
    /// The sum of the lengths of the paths.
    bytes: usize,
    has_overflowed: bool,
}

struct PathChange {
    before: StateBefore,
    now: StateNow,
    /// Whether it is or was a directory.
    is_directory: bool,
}

#[derive(PartialEq, Eq)]
enum StateBefore {
    Present,
    Absent,
    Unknown,
}

#[derive(PartialEq, Eq)]
enum StateNow {
    Absent,
    New,
    Modified,
    Metadata,
}

/// How many paths are kept; more are an overflow.
const MAX_PATHS: usize = 16 * 1024;

/// How many bytes of paths are kept; more are an overflow.
const MAX_BYTES: usize = 2 * 1024 * 1024;

impl PendingChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.has_overflowed
    }

    /// Drops all changes, and reports an overflow in their place.
    pub(super) fn overflow(&mut self) {
        *self = Self {
            has_overflowed: true,
            ..Self::default()
        };
    }

    pub(super) fn add(&mut self, path: &[u8], event: PathEvent, is_directory: bool) {
        if self.has_overflowed {
            return;
        }
        let found = self.by_path.binary_search_by(|place| {
            let known = self.changes.get(*place).map(|(path, _)| path.as_slice());
            known.unwrap_or_default().cmp(path)
        });
        let place = match found {
            Ok(place) => {
                let place = self.by_path.get(place).copied().unwrap_or_default();
                if let Some((_, change)) = self.changes.get_mut(place) {
                    change.is_directory |= is_directory;
                    change.merge(event);
                }
                return;
            }
            Err(place) => place,
        };
        if self.changes.len() >= MAX_PATHS || self.bytes.saturating_add(path.len()) > MAX_BYTES {
            self.overflow();
            return;
        }
        self.bytes = self.bytes.saturating_add(path.len());
        self.by_path.insert(place, self.changes.len());
        let change = PathChange::begin(event, is_directory);
        self.changes.push((Vec::from(path), change));
    }

    /// Takes all changes, in the order of the first event of each path.
    pub(super) fn take(&mut self) -> Vec<(Vec<u8>, ChangeKind)> {
        let Self {
            changes,
            has_overflowed,
            ..
        } = core::mem::take(self);
        if has_overflowed {
            return alloc::vec![(Vec::new(), ChangeKind::Overflow)];
        }
        let mut reports = Vec::new();
        for (path, change) in changes {
            let (first, second) = change.kinds();
            if let Some(first) = first {
                reports.push((path.clone(), first));
            }
            if let Some(second) = second {
                reports.push((path, second));
            }
        }
        reports
    }
}

impl PathChange {
    fn begin(event: PathEvent, is_directory: bool) -> Self {
        let (before, now) = match event {
            PathEvent::Created => (StateBefore::Absent, StateNow::New),
            PathEvent::MovedHere => (StateBefore::Unknown, StateNow::New),
            PathEvent::Modified => (StateBefore::Present, StateNow::Modified),
            PathEvent::Metadata => (StateBefore::Present, StateNow::Metadata),
            PathEvent::Removed => (StateBefore::Present, StateNow::Absent),
        };
        Self {
            before,
            now,
            is_directory,
        }
    }

    fn merge(&mut self, event: PathEvent) {
        match event {
            PathEvent::Created | PathEvent::MovedHere => self.now = StateNow::New,
            PathEvent::Removed => self.now = StateNow::Absent,
            PathEvent::Modified if self.now == StateNow::Metadata => self.now = StateNow::Modified,
            // The change that is reported includes it.
            PathEvent::Modified | PathEvent::Metadata => {}
        }
    }

    fn kinds(&self) -> (Option<ChangeKind>, Option<ChangeKind>) {
        let kind = match (&self.now, &self.before) {
            (StateNow::Absent, StateBefore::Absent) => return (None, None),
            (StateNow::Absent, _) => ChangeKind::Removed,
            (StateNow::New, StateBefore::Present) if self.is_directory => {
                return (Some(ChangeKind::Removed), Some(ChangeKind::Created));
            }
            (StateNow::New, StateBefore::Present) => ChangeKind::Modified,
            (StateNow::New, _) => ChangeKind::Created,
            (StateNow::Modified, _) => ChangeKind::Modified,
            (StateNow::Metadata, _) => ChangeKind::Metadata,
        };
        (Some(kind), None)
    }
}

#[cfg(test)]
mod tests {
    use PathEvent::*;
    use proptest::prelude::*;

    use super::*;

    fn told(events: &[PathEvent], is_directory: bool) -> Vec<ChangeKind> {
        let mut pending = PendingChanges::default();
        for event in events {
            pending.add(b"a", *event, is_directory);
        }
        pending.take().into_iter().map(|(_, kind)| kind).collect()
    }

    #[test]
    fn what_is_new_is_created_whatever_else_happens_to_it() {
        assert_eq!(
            told(&[Created, Modified, Metadata], false),
            [ChangeKind::Created]
        );
        assert_eq!(
            told(&[Created, Removed, Created], false),
            [ChangeKind::Created]
        );
    }

    #[test]
    fn what_was_there_only_for_a_moment_is_not_told() {
        assert_eq!(told(&[Created, Modified, Removed], false), []);
    }

    #[test]
    fn a_file_that_another_one_may_have_replaced_is_told_when_it_goes() {
        assert_eq!(told(&[MovedHere, Removed], false), [ChangeKind::Removed]);
    }

    #[test]
    fn a_file_that_is_removed_and_made_again_is_modified() {
        assert_eq!(
            told(&[Removed, Created, Metadata], false),
            [ChangeKind::Modified]
        );
        assert_eq!(told(&[Metadata, Modified], false), [ChangeKind::Modified]);
        assert_eq!(told(&[Modified, Removed], false), [ChangeKind::Removed]);
    }

    #[test]
    fn a_directory_that_is_another_one_now_is_removed_and_created() {
        let both = [ChangeKind::Removed, ChangeKind::Created];
        assert_eq!(told(&[Removed, Created], true), both);
    }

    #[test]
    fn paths_come_in_the_order_in_which_they_changed() {
        let mut pending = PendingChanges::default();
        for path in [b"c", b"a", b"b", b"a"] {
            pending.add(path, Modified, false);
        }
        let paths: Vec<_> = pending.take().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [b"c", b"a", b"b"]);
        assert!(pending.is_empty());
    }

    #[test]
    fn too_many_paths_are_an_overflow_and_then_it_goes_on() {
        let mut pending = PendingChanges::default();
        for number in 0..=MAX_PATHS {
            pending.add(&number.to_le_bytes(), Created, false);
        }
        assert_eq!(pending.take(), [(Vec::new(), ChangeKind::Overflow)]);
        pending.add(b"a", Created, false);
        assert_eq!(pending.take(), [(b"a".to_vec(), ChangeKind::Created)]);
    }

    proptest! {
        #[test]
        fn what_is_told_fits_what_is_there_in_the_end(
            was_there: bool,
            wishes in prop::collection::vec(any::<bool>(), 0..12),
        ) {
            let mut pending = PendingChanges::default();
            let mut is_there = was_there;
            for wish in wishes {
                let event = match (is_there, wish) {
                    (true, true) => Modified,
                    (true, false) => Removed,
                    (false, true) => Created,
                    (false, false) => continue,
                };
                is_there = wish;
                pending.add(b"a", event, false);
            }
            let told: Vec<_> = pending.take().into_iter().map(|(_, kind)| kind).collect();
            match (was_there, is_there) {
                (true, true) => prop_assert!(matches!(&told[..], [] | [ChangeKind::Modified])),
                (true, false) => prop_assert_eq!(&told[..], [ChangeKind::Removed]),
                (false, true) => prop_assert_eq!(&told[..], [ChangeKind::Created]),
                (false, false) => prop_assert!(told.is_empty()),
            }
        }
    }
}
