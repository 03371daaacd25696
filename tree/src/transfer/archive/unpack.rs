use std::{collections::BTreeMap, io::Read, path::Path};

use vmcell_wire::{
    limits::{MAX_INLINE, MAX_PATH},
    pattern::{Filter, Selection},
};

use super::{
    ArchiveProblem,
    entries::{Entries, Entry, EntryKind},
    entry_name::split,
    names::Names,
    sparse::SparseMap,
};
use crate::transfer::{TreeError, budget::check_depth, meta::MetaBuf, send::Outgoing};

/// Sends what is in an archive.
///
/// Directories are made as names need them and get their permissions and times
/// at the end, when nothing is put into them any more: an archive may come back
/// to a directory at any time. The top gets those of the archive's `./`, if
/// that is its first entry.
pub(in crate::transfer) fn send(
    reader: Box<dyn Read + Send>,
    archive: &Path,
    filter: &Filter,
    outgoing: &mut Outgoing<'_>,
) -> Result<(), TreeError> {
    let mut unpack = Unpack {
        entries: Entries::new(reader, archive)?,
        filter,
        outgoing,
        names: Names::new(),
        directories: BTreeMap::new(),
        path: Vec::new(),
        depth: 0,
        buffer: Vec::new(),
    };
    unpack.run()
}

struct Unpack<'u, 's> {
    entries: Entries<'u>,
    filter: &'u Filter,
    outgoing: &'u mut Outgoing<'s>,
    names: Names<Seen>,
    /// What directories get at the end. A zero byte stands for the slash, so
    /// that what is in a directory comes right behind it.
    directories: BTreeMap<Vec<u8>, MetaBuf>,
    /// The directory that was entered last, and how deep that is.
    path: Vec<u8>,
    depth: usize,
    buffer: Vec<u8>,
}

/// What a path of the archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Directory,
    File,
    Symlink,
    LeftOut,
}

impl Unpack<'_, '_> {
    fn run(&mut self) -> Result<(), TreeError> {
        let mut next = self.entries.next()?;
        self.outgoing.begin(b"")?;
        match next.take_if(|first| first.is_top()) {
            Some(top) => {
                self.outgoing.enter(b"", Some(&top.meta), b"")?;
                next = self.entries.next()?;
            }
            None => self.outgoing.enter(b"", None, b"")?,
        }
        while let Some(entry) = next {
            self.entry(entry)?;
            next = self.entries.next()?;
        }
        self.finish_directories()?;
        self.go_up_to(b"")?;
        self.outgoing.leave()
    }

    fn entry(&mut self, entry: Entry) -> Result<(), TreeError> {
        let path = entry.path;
        if path.is_empty() {
            return match entry.kind {
                // Too late: what it says is set when the top is left.
                EntryKind::Directory => Ok(()),
                _ => Err(self.entries.problem(ArchiveProblem::BadName)),
            };
        }
        let is_directory = matches!(entry.kind, EntryKind::Directory);
        let selection = self.filter.select(&path, is_directory);
        if selection == Selection::Skip {
            if !is_directory {
                self.note(&path, Seen::LeftOut)?;
            }
            return Ok(());
        }
        self.outgoing.lost_xattrs += entry.lost_xattrs;
        match entry.kind {
            EntryKind::Directory => {
                if self
                    .names
                    .get(&path)
                    .is_some_and(|seen| *seen != Seen::Directory)
                {
                    return Err(self.entries.problem(ArchiveProblem::KindChanged));
                }
                self.names
                    .take_up(&path, path.len() + MAX_META + entry.meta.xattrs_size())?;
                self.directories.insert(sortable(&path), entry.meta);
                if selection == Selection::Take {
                    self.enter(&path)?;
                }
                Ok(())
            }
            EntryKind::File { stored, sparse } => {
                let name = self.begin(&path, Seen::File)?;
                match sparse {
                    None if stored <= MAX_INLINE as u64 => {
                        self.whole_file(name, &entry.meta, stored, &path)
                    }
                    None => self.plain_file(name, &entry.meta, stored, &path),
                    Some(map) => self.sparse_file(name, &entry.meta, &map, &path),
                }
            }
            EntryKind::Symlink { target } => {
                if target.is_empty() || target.len() >= MAX_PATH || target.contains(&0) {
                    return Err(self.entries.problem(ArchiveProblem::BadTarget));
                }
                let name = self.begin(&path, Seen::Symlink)?;
                self.outgoing.symlink(name, &entry.meta, &target, &path)
            }
            EntryKind::HardLink { to } => self.hard_link(&path, &to),
            EntryKind::Other(reason) => self.leave_out(&path, reason),
        }
    }

    fn hard_link(&mut self, path: &[u8], to: &[u8]) -> Result<(), TreeError> {
        match self.names.get(to) {
            Some(Seen::File) if to != path => {
                let name = self.begin(path, Seen::File)?;
                self.outgoing.hard_link(name, to, path)
            }
            Some(Seen::LeftOut) => self.leave_out(path, "it is a name of what was left out"),
            _ => Err(self.entries.problem(ArchiveProblem::BadLink)),
        }
    }

    fn whole_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        // It was found to be no larger than a record.
        self.buffer.clear();
        self.buffer.resize(usize::try_from(size).unwrap_or(0), 0);
        self.entries.read_exact(&mut self.buffer)?;
        self.outgoing.whole_file(name, meta, &self.buffer, path)
    }

    fn plain_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.outgoing.budget.check_data(size, path)?;
        self.outgoing.begin_file(name, meta, size, path)?;
        self.file_data(size, path)?;
        self.outgoing.end_file(path)
    }

    fn sparse_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        map: &SparseMap,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.outgoing.begin_file(name, meta, map.length, path)?;
        let mut end = 0;
        for (offset, length) in &map.parts {
            self.outgoing.hole(offset - end, path)?;
            self.file_data(*length, path)?;
            end = offset + length;
        }
        self.outgoing.hole(map.length - end, path)?;
        self.outgoing.end_file(path)
    }

    fn file_data(&mut self, mut left: u64, path: &[u8]) -> Result<(), TreeError> {
        let entries = &mut self.entries;
        while left > 0 {
            let count = self.outgoing.file_data(left, path, |piece, most| {
                let start = piece.len();
                piece.resize(start + most, 0);
                let count = entries.read(piece.get_mut(start..).unwrap_or_default())?;
                piece.truncate(start + count);
                Ok(())
            })?;
            if count == 0 {
                return Err(self.entries.problem(ArchiveProblem::BadNumber));
            }
            left -= count;
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &[u8], reason: &str) -> Result<(), TreeError> {
        self.note(path, Seen::LeftOut)?;
        self.outgoing.left_outs.add(path, reason.to_owned());
        Ok(())
    }

    /// Goes to the directory that an entry is in, and counts the entry. Tells
    /// its name there.
    fn begin<'p>(&mut self, path: &'p [u8], seen: Seen) -> Result<&'p [u8], TreeError> {
        let (parent, name) = split(path);
        self.enter(parent)?;
        self.note(path, seen)?;
        self.outgoing.begin(path)?;
        Ok(name)
    }

    /// Notes what is at a path. The last of several counts, but what is a
    /// directory remains one.
    fn note(&mut self, path: &[u8], seen: Seen) -> Result<(), TreeError> {
        match self.names.insert(path, seen)? {
            Some(before) if (before == Seen::Directory) != (seen == Seen::Directory) => {
                Err(self.entries.problem(ArchiveProblem::KindChanged))
            }
            _ => Ok(()),
        }
    }

    /// Goes to a directory; those that are new are made on the way.
    fn enter(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.go_up_to(path)?;
        while self.path.len() < path.len() {
            let next = self.next_on_the_way_to(path);
            check_depth(self.depth + 1, next)?;
            match self.names.get(next) {
                Some(Seen::Directory) => {}
                Some(_) => return Err(self.entries.problem(ArchiveProblem::NotInDirectory)),
                None => {
                    self.note(next, Seen::Directory)?;
                    self.outgoing.begin(next)?;
                }
            }
            self.step_into(next, None)?;
        }
        Ok(())
    }

    /// Leaves directories until the one that is left holds the path.
    fn go_up_to(&mut self, path: &[u8]) -> Result<(), TreeError> {
        while !is_within(path, &self.path) {
            self.path.truncate(split(&self.path).0.len());
            self.depth -= 1;
            self.outgoing.leave()?;
        }
        Ok(())
    }

    fn next_on_the_way_to<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        let start = match self.path.len() {
            0 => 0,
            length => length + 1,
        };
        let rest = path.get(start..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'/') {
            Some(slash) => path.get(..start + slash).unwrap_or(path),
            None => path,
        }
    }

    fn step_into(&mut self, path: &[u8], meta: Option<&MetaBuf>) -> Result<(), TreeError> {
        self.outgoing.enter(split(path).1, meta, path)?;
        self.path.clear();
        self.path.extend_from_slice(path);
        self.depth += 1;
        Ok(())
    }

    /// Enters each directory once more, for what is set when it is left.
    fn finish_directories(&mut self) -> Result<(), TreeError> {
        self.go_up_to(b"")?;
        for (key, meta) in std::mem::take(&mut self.directories) {
            let path = unsorted(key);
            // One that was only passed by was not made if nothing in it was.
            if self.names.get(&path) == Some(&Seen::Directory) {
                self.enter(split(&path).0)?;
                self.step_into(&path, Some(&meta))?;
            }
        }
        Ok(())
    }
}

/// What a directory's times and permissions take up until the end.
const MAX_META: usize = std::mem::size_of::<MetaBuf>();

impl Entry {
    fn is_top(&self) -> bool {
        self.path.is_empty() && matches!(self.kind, EntryKind::Directory)
    }
}

fn is_within(path: &[u8], directory: &[u8]) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) => directory.is_empty() || rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

fn sortable(path: &[u8]) -> Vec<u8> {
    let separator = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    path.iter().map(separator).collect()
}

fn unsorted(mut key: Vec<u8>) -> Vec<u8> {
    for byte in &mut key {
        if *byte == 0 {
            *byte = b'/';
        }
    }
    key
}
