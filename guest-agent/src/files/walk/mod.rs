mod entry_sender;
mod hard_links;
mod listing;
mod traversal;

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

use self::{entry_sender::EntrySender, traversal::ignore_vanished};
pub(crate) use self::{
    hard_links::HardLinks,
    listing::Order,
    traversal::{READ_DIRECTORY, Step, Traversal},
};
use super::{
    entry::has_type,
    resolve::ResolveError,
    root::{Root, resolve_error},
    target::{NO_SIDE_EFFECTS, open_file},
};
use crate::worker::{FileError, FileResult, JobError, JobIo, JobResult};

/// Lists the entries of a tree.
pub(super) fn perform(io: &mut JobIo, root: &Root, walk: &Walk<'_>) -> JobResult<()> {
    let filter = EntryFilter::new(walk)?;
    let sender = EntrySender::new(io, walk.names, walk.digest);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | NO_SIDE_EFFECTS;
    match root.resolve(walk.path, flags, Mode::empty()) {
        Ok(top) => walk_directory(sender, top, walk, &filter),
        Err(ResolveError::Kernel(Errno::NOTDIR)) => send_single(sender, root, walk),
        Err(why) => Err(resolve_error(why)),
    }
}

/// Selects entries by their paths.
struct EntryFilter {
    glob: Option<Glob>,
    filter: Filter,
}

impl EntryFilter {
    fn new(walk: &Walk<'_>) -> JobResult<Self> {
        let glob = match walk.glob {
            b"" => None,
            glob => Some(Glob::new(glob).map_err(bad_pattern)?),
        };
        let filter = Filter::new(walk.include, walk.exclude).map_err(bad_pattern)?;
        Ok(Self { glob, filter })
    }

    fn includes(&self, selection: Selection, path: &[u8]) -> bool {
        let matches = |glob: &Glob| glob.matches(path);
        selection == Selection::Include && self.glob.as_ref().is_none_or(matches)
    }

    fn descends_into(&self, selection: Selection, path: &[u8]) -> bool {
        let could_match = |glob: &Glob| glob.could_match_below(path);
        selection != Selection::Skip && self.glob.as_ref().is_none_or(could_match)
    }
}

/// Rejects a pattern without details, because the host has checked it before.
pub(crate) fn bad_pattern(_: PatternError) -> JobError {
    FileError::new(FailureKind::Invalid, "a pattern is not well-formed").into()
}

fn walk_directory(
    mut sender: EntrySender<'_>,
    top: OwnedFd,
    walk: &Walk<'_>,
    filter: &EntryFilter,
) -> JobResult<()> {
    if walk.top && filter.glob.is_none() {
        sender.send_opened(&[], top.as_fd())?;
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
    let mut traversal = Traversal::new(top, order, filter.filter.select_root());
    while let Some(step) = traversal.next() {
        sender.check()?;
        match step {
            Ok(Step::Entry(hint)) => {
                if let Err(failure) = visit(&mut sender, &mut traversal, hint, depth, filter)? {
                    sender.send_problem(traversal.path(), &failure)?;
                }
            }
            Ok(Step::Left) => {}
            Err(failure) => sender.send_problem(traversal.path(), &failure)?,
        }
    }
    Ok(())
}

/// Sends an entry and enters it, if the filter selects it. The inner error concerns
/// only this entry.
fn visit(
    sender: &mut EntrySender<'_>,
    traversal: &mut Traversal,
    hint: FileType,
    depth: usize,
    filter: &EntryFilter,
) -> JobResult<FileResult<()>> {
    if traversal.path().len() > MAX_PATH {
        let failure = FileError::new(
            FailureKind::Limit,
            "a path below it is too long to be reported",
        );
        return sender
            .send_problem(traversal.path_above(), &failure)
            .map(Ok);
    }
    let kind = match hint {
        FileType::Unknown => match traversal.status() {
            Ok(status) => FileType::from_raw_mode(status.st_mode),
            Err(errno) => return Ok(ignore_vanished(errno)),
        },
        kind => kind,
    };
    let is_directory = kind == FileType::Directory;
    let selection =
        filter
            .filter
            .select_within(traversal.selection(), traversal.path(), is_directory);
    let included = filter.includes(selection, traversal.path());
    let enters = is_directory
        && traversal.depth() < depth
        && filter.descends_into(selection, traversal.path());
    if included && let Err(failure) = sender.send(traversal, kind)? {
        return Ok(Err(failure));
    }
    if !enters {
        return Ok(Ok(()));
    }
    Ok(match traversal.open(READ_DIRECTORY) {
        Ok(directory) => traversal.enter(directory, selection),
        Err(errno) => ignore_vanished(errno),
    })
}

/// Sends the top of a tree that is not a directory.
fn send_single(mut sender: EntrySender<'_>, root: &Root, walk: &Walk<'_>) -> JobResult<()> {
    let found = root.open_path(walk.path, OFlags::PATH, Mode::empty())?;
    let status = rustix::fs::fstat(&found).map_err(resolve_error)?;
    if walk.digest && has_type(&status, FileType::RegularFile) {
        let (file, _) = open_file(root, walk.path, OFlags::RDONLY)?;
        return sender.send_opened(&[], file.as_fd());
    }
    sender.send_opened(&[], found.as_fd())
}
