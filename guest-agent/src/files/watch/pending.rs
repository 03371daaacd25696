use alloc::vec::Vec;

use vmcell_wire::files::ChangeKind;

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// There was nothing, and now it is there.
    Created,
    /// It has this name now; something else may have had it.
    Arrived,
    Modified,
    Metadata,
    Removed,
}

/// What happened and was not told.
///
/// Each path is told once, by what it was before and what it is now:
///
/// | before   | now           | told                          |
/// |----------|---------------|-------------------------------|
/// | absent   | there         | `Created`                     |
/// | absent   | absent        | nothing                       |
/// | there    | absent        | `Removed`                     |
/// | there    | changed       | `Modified` or `Metadata`      |
/// | there    | another file  | `Modified`                    |
/// | there    | another directory, or one of both was one | `Removed`, `Created` |
#[derive(Default)]
pub(super) struct Pending {
    /// In the order in which they began.
    fates: Vec<(Vec<u8>, Fate)>,
    /// Where they are in there, in the order of their paths.
    by_path: Vec<usize>,
    /// How long the paths are together.
    bytes: usize,
    is_too_much: bool,
}

struct Fate {
    before: Before,
    now: Now,
    /// Whether it is or was a directory.
    is_directory: bool,
}

#[derive(PartialEq, Eq)]
enum Before {
    There,
    Absent,
    Unknown,
}

#[derive(PartialEq, Eq)]
enum Now {
    Absent,
    New,
    Modified,
    Metadata,
}

/// More paths are too much to be told.
const MAX_PATHS: usize = 16 * 1024;

/// More bytes of paths are too much to be told.
const MAX_BYTES: usize = 2 * 1024 * 1024;

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.fates.is_empty() && !self.is_too_much
    }

    /// Forgets everything: not all of it can be told.
    pub(super) fn overflow(&mut self) {
        *self = Self {
            is_too_much: true,
            ..Self::default()
        };
    }

    pub(super) fn add(&mut self, path: &[u8], happening: Happening, is_directory: bool) {
        if self.is_too_much {
            return;
        }
        let found = self.by_path.binary_search_by(|place| {
            let known = self.fates.get(*place).map(|(path, _)| path.as_slice());
            known.unwrap_or_default().cmp(path)
        });
        let place = match found {
            Ok(place) => {
                let place = self.by_path.get(place).copied().unwrap_or_default();
                if let Some((_, fate)) = self.fates.get_mut(place) {
                    fate.is_directory |= is_directory;
                    fate.go_on(happening);
                }
                return;
            }
            Err(place) => place,
        };
        if self.fates.len() >= MAX_PATHS || self.bytes.saturating_add(path.len()) > MAX_BYTES {
            self.overflow();
            return;
        }
        self.bytes = self.bytes.saturating_add(path.len());
        self.by_path.insert(place, self.fates.len());
        let fate = Fate::begin(happening, is_directory);
        self.fates.push((Vec::from(path), fate));
    }

    /// Takes everything, in the order in which it began.
    pub(super) fn take(&mut self) -> Vec<(Vec<u8>, ChangeKind)> {
        let Self {
            fates, is_too_much, ..
        } = core::mem::take(self);
        if is_too_much {
            return alloc::vec![(Vec::new(), ChangeKind::Overflow)];
        }
        let mut told = Vec::new();
        for (path, fate) in fates {
            let (first, second) = fate.told();
            if let Some(first) = first {
                told.push((path.clone(), first));
            }
            if let Some(second) = second {
                told.push((path, second));
            }
        }
        told
    }
}

impl Fate {
    fn begin(happening: Happening, is_directory: bool) -> Self {
        let (before, now) = match happening {
            Happening::Created => (Before::Absent, Now::New),
            Happening::Arrived => (Before::Unknown, Now::New),
            Happening::Modified => (Before::There, Now::Modified),
            Happening::Metadata => (Before::There, Now::Metadata),
            Happening::Removed => (Before::There, Now::Absent),
        };
        Self {
            before,
            now,
            is_directory,
        }
    }

    fn go_on(&mut self, happening: Happening) {
        match happening {
            Happening::Created | Happening::Arrived => self.now = Now::New,
            Happening::Removed => self.now = Now::Absent,
            Happening::Modified if self.now == Now::Metadata => self.now = Now::Modified,
            // It is part of what is told anyway.
            Happening::Modified | Happening::Metadata => {}
        }
    }

    fn told(&self) -> (Option<ChangeKind>, Option<ChangeKind>) {
        let kind = match (&self.now, &self.before) {
            (Now::Absent, Before::Absent) => return (None, None),
            (Now::Absent, _) => ChangeKind::Removed,
            (Now::New, Before::There) if self.is_directory => {
                return (Some(ChangeKind::Removed), Some(ChangeKind::Created));
            }
            (Now::New, Before::There) => ChangeKind::Modified,
            (Now::New, _) => ChangeKind::Created,
            (Now::Modified, _) => ChangeKind::Modified,
            (Now::Metadata, _) => ChangeKind::Metadata,
        };
        (Some(kind), None)
    }
}

#[cfg(test)]
mod tests {
    use Happening::*;
    use proptest::prelude::*;

    use super::*;

    fn told(happenings: &[Happening], is_directory: bool) -> Vec<ChangeKind> {
        let mut pending = Pending::default();
        for happening in happenings {
            pending.add(b"a", *happening, is_directory);
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
        assert_eq!(told(&[Arrived, Removed], false), [ChangeKind::Removed]);
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
        let mut pending = Pending::default();
        for path in [b"c", b"a", b"b", b"a"] {
            pending.add(path, Modified, false);
        }
        let paths: Vec<_> = pending.take().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [b"c", b"a", b"b"]);
        assert!(pending.is_empty());
    }

    #[test]
    fn too_many_paths_are_an_overflow_and_then_it_goes_on() {
        let mut pending = Pending::default();
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
            let mut pending = Pending::default();
            let mut is_there = was_there;
            for wish in wishes {
                let happening = match (is_there, wish) {
                    (true, true) => Modified,
                    (true, false) => Removed,
                    (false, true) => Created,
                    (false, false) => continue,
                };
                is_there = wish;
                pending.add(b"a", happening, false);
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
