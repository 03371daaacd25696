mod links;
mod listing;
mod tell;
mod tour;

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags},
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::Walk,
    limits::MAX_PATH,
    pattern::{Filter, Glob, PatternError, Selection},
};

use self::tell::Teller;
pub(crate) use self::{
    links::Links,
    listing::Order,
    tour::{READ_DIRECTORY, Step, Tour},
};
use super::{
    link_walk::Unresolved,
    root::{Root, unresolved},
    target::{HARMLESS, is, open_file},
};
use crate::worker::{FileError, JobError, JobIo};

/// Tells the entries of a tree.
pub(super) fn perform(io: &mut JobIo, root: &Root, walk: &Walk<'_>) -> Result<(), JobError> {
    let choice = Choice::new(walk)?;
    let teller = Teller::new(io, walk.names, walk.digest);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | HARMLESS;
    match root.find(walk.path, flags, Mode::empty()) {
        Ok(top) => walk_directory(teller, top, walk, &choice),
        Err(Unresolved::Kernel(Errno::NOTDIR)) => tell_lone(teller, root, walk),
        Err(why) => Err(unresolved(why)),
    }
}

/// Which entries are meant.
struct Choice {
    glob: Option<Glob>,
    filter: Filter,
}

impl Choice {
    fn new(walk: &Walk<'_>) -> Result<Self, JobError> {
        let glob = match walk.glob {
            b"" => None,
            glob => Some(Glob::new(glob).map_err(bad_pattern)?),
        };
        let filter = Filter::new(walk.include, walk.exclude).map_err(bad_pattern)?;
        Ok(Self { glob, filter })
    }

    fn tells(&self, selection: Selection, path: &[u8]) -> bool {
        let matches = |glob: &Glob| glob.matches(path);
        selection == Selection::Take && self.glob.as_ref().is_none_or(matches)
    }

    fn enters(&self, selection: Selection, path: &[u8]) -> bool {
        let could_match = |glob: &Glob| glob.could_match_below(path);
        selection != Selection::Skip && self.glob.as_ref().is_none_or(could_match)
    }
}

/// The host has read the patterns before, and told its user what is wrong.
pub(crate) fn bad_pattern(_: PatternError) -> JobError {
    FileError::new(FailureKind::Invalid, "a pattern is not well-formed").into()
}

fn walk_directory(
    mut teller: Teller<'_>,
    top: OwnedFd,
    walk: &Walk<'_>,
    choice: &Choice,
) -> Result<(), JobError> {
    if walk.top && choice.glob.is_none() {
        teller.tell_found(&[], top.as_fd())?;
    }
    if walk.depth == 0 {
        return Ok(());
    }
    let order = if walk.sorted {
        Order::Sorted
    } else {
        Order::Any
    };
    let depth = usize::try_from(walk.depth).unwrap_or(usize::MAX);
    let mut tour = Tour::new(top, order, choice.filter.select_root());
    while let Some(step) = tour.next() {
        teller.check()?;
        match step {
            Ok(Step::Entry(hint)) => {
                if let Err(failure) = visit(&mut teller, &mut tour, hint, depth, choice)? {
                    teller.tell_trouble(tour.path(), &failure)?;
                }
            }
            Ok(Step::Left) => {}
            Err(failure) => teller.tell_trouble(tour.path(), &failure)?,
        }
    }
    Ok(())
}

/// Tells an entry, and enters it, as far as it is meant. The inner failure is
/// the entry's own.
fn visit(
    teller: &mut Teller<'_>,
    tour: &mut Tour,
    hint: FileType,
    depth: usize,
    choice: &Choice,
) -> Result<Result<(), FileError>, JobError> {
    if tour.path().len() > MAX_PATH {
        let failure = FileError::new(FailureKind::Limit, "a path below it is too long to be told");
        return teller.tell_trouble(tour.path_above(), &failure).map(Ok);
    }
    let kind = match hint {
        FileType::Unknown => match tour.status() {
            Ok(status) => FileType::from_raw_mode(status.st_mode),
            Err(errno) => return Ok(gone_is_fine(errno)),
        },
        kind => kind,
    };
    let is_directory = kind == FileType::Directory;
    let selection = choice
        .filter
        .select_within(tour.selection(), tour.path(), is_directory);
    let tells = choice.tells(selection, tour.path());
    let enters = is_directory && tour.depth() < depth && choice.enters(selection, tour.path());
    if tells && let Err(failure) = teller.tell(tour, kind)? {
        return Ok(Err(failure));
    }
    if !enters {
        return Ok(Ok(()));
    }
    Ok(match tour.open(READ_DIRECTORY) {
        Ok(directory) => tour.enter(directory, selection),
        Err(errno) => gone_is_fine(errno),
    })
}

/// What was removed or replaced since its name was read is not there: that is
/// no failure.
fn gone_is_fine(errno: Errno) -> Result<(), FileError> {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Ok(()),
        errno => Err(FileError::from_errno(errno, "looking at it")),
    }
}

/// A top that is no directory is all there is.
fn tell_lone(mut teller: Teller<'_>, root: &Root, walk: &Walk<'_>) -> Result<(), JobError> {
    let found = root.open_path(walk.path, OFlags::PATH, Mode::empty())?;
    let status = rustix::fs::fstat(&found).map_err(unresolved)?;
    if walk.digest && is(&status, FileType::RegularFile) {
        let (file, _) = open_file(root, walk.path, OFlags::RDONLY)?;
        return teller.tell_found(&[], file.as_fd());
    }
    teller.tell_found(&[], found.as_fd())
}
