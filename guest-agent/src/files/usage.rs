use rustix::{
    fd::AsFd,
    fs::{FileType, Mode, OFlags, Stat, fstat},
    io::Errno,
};
use vmcell_wire::{
    files::{FileReply, Usage},
    pattern::Selection,
};

use super::{
    entry::{describe, has_type},
    root::{Root, resolve_error},
    walk::{HardLinks, Order, READ_DIRECTORY, Step, Traversal},
};
use crate::worker::{JobIo, JobResult};

/// Reports how much space a tree takes.
pub(super) fn perform(io: &mut JobIo, root: &Root, path: &[u8]) -> JobResult<()> {
    let top = root.open_path(path, OFlags::PATH, Mode::empty())?;
    let status = fstat(&top).map_err(resolve_error)?;
    let mut counter = UsageCounter::default();
    counter.add(&status);
    if has_type(&status, FileType::Directory) {
        // The same directory, opened for reading.
        let directory = rustix::fs::openat(top.as_fd(), c".", READ_DIRECTORY, Mode::empty())
            .map_err(resolve_error)?;
        let mut traversal = Traversal::new(directory, Order::Any, Selection::Include);
        while let Some(step) = traversal.next() {
            io.check_cancelled()?;
            match step {
                Ok(Step::Entry(_)) if visit(&mut traversal, &mut counter) => {}
                Ok(Step::Left) => {}
                _ => counter.usage.problems = counter.usage.problems.saturating_add(1),
            }
        }
    }
    io.send_answer(&FileReply::Usage(counter.usage))
}

/// Adds an entry, and enters it if it is a directory. Returns false if that failed.
fn visit(traversal: &mut Traversal, counter: &mut UsageCounter) -> bool {
    let status = match traversal.status() {
        Ok(status) => status,
        // An entry that was removed since its name was read is no failure.
        Err(errno) => return errno == Errno::NOENT,
    };
    counter.add(&status);
    if !has_type(&status, FileType::Directory) {
        return true;
    }
    match traversal.open(READ_DIRECTORY) {
        Ok(directory) => traversal.enter(directory, Selection::Include).is_ok(),
        Err(errno) => matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP),
    }
}

#[derive(Default)]
struct UsageCounter {
    usage: Usage,
    hard_links: HardLinks,
}

impl UsageCounter {
    fn add(&mut self, status: &Stat) {
        let usage = &mut self.usage;
        usage.entries = usage.entries.saturating_add(1);
        let is_directory = has_type(status, FileType::Directory);
        if is_directory {
            usage.directories = usage.directories.saturating_add(1);
        }
        let mut share = 1;
        if !is_directory && status.st_nlink > 1 {
            if self.hard_links.find(status).is_some() {
                return;
            }
            if !self.hard_links.remember(status, &[]) {
                // There are too many to remember: each name counts for its share
                // of the file.
                share = u64::from(describe(&[], status).links);
            }
        }
        let part = |whole: i64| {
            let whole = u64::try_from(whole).unwrap_or(0);
            whole.checked_div(share).unwrap_or(0)
        };
        if has_type(status, FileType::RegularFile) {
            usage.bytes = usage.bytes.saturating_add(part(status.st_size));
        }
        let allocated = part(status.st_blocks.saturating_mul(512));
        usage.allocated = usage.allocated.saturating_add(allocated);
    }
}
