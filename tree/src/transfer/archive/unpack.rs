use std::{collections::BTreeMap, io::Read, path::Path};

use vmcell_archive::{EntryKind, SparseMap};
use vmcell_wire::{
    limits::{MAX_INLINE, MAX_PATH},
    pattern::{Filter, Selection},
};

use super::{
    ArchiveProblem,
    entry_name::split,
    path_map::PathMap,
    reader::{ArchiveEntry, ArchiveReader},
};
use crate::transfer::{TreeError, budget::check_depth, meta::MetaBuf, send::RecordSender};

/// Sends the entries of an archive.
///
/// Directories are created when a path needs them, and get their permissions
/// and times at the end, because an archive may add to a directory at any time.
/// The top gets those of the archive's `./`, if that is its first entry.
pub(in crate::transfer) fn send(
    reader: Box<dyn Read + Send>,
    archive: &Path,
    filter: &Filter,
    sender: &mut RecordSender<'_>,
) -> Result<(), TreeError> {
    let mut sender = ArchiveSender {
        reader: ArchiveReader::new(reader, archive)?,
        filter,
        sender,
        paths: PathMap::new(),
        directories: BTreeMap::new(),
        path: Vec::new(),
        depth: 0,
        buffer: Vec::new(),
    };
    sender.run()
}

struct ArchiveSender<'u, 's> {
    reader: ArchiveReader<'u>,
    filter: &'u Filter,
    sender: &'u mut RecordSender<'s>,
    paths: PathMap<PathKind>,
    /// The metadata to apply to directories at the end. In the keys, a NUL byte
    /// replaces the slash, so that the contents of a directory sort right after
    /// it.
    directories: BTreeMap<Vec<u8>, MetaBuf>,
    /// The directory that was entered last, and its depth.
    path: Vec<u8>,
    depth: usize,
    buffer: Vec<u8>,
}

/// The kind of a path of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathKind {
    Directory,
    File,
    Symlink,
    Skipped,
}

impl ArchiveSender<'_, '_> {
    fn run(&mut self) -> Result<(), TreeError> {
        let mut next = self.reader.next()?;
        self.sender.begin(b"")?;
        match next.take_if(|first| first.is_top()) {
            Some(top) => {
                self.sender.enter(b"", Some(&top.meta), b"")?;
                next = self.reader.next()?;
            }
            None => self.sender.enter(b"", None, b"")?,
        }
        while let Some(entry) = next {
            self.entry(entry)?;
            next = self.reader.next()?;
        }
        self.finish_directories()?;
        self.leave_until(b"")?;
        self.sender.leave()
    }

    fn entry(&mut self, entry: ArchiveEntry) -> Result<(), TreeError> {
        let path = entry.path;
        if path.is_empty() {
            return match entry.kind {
                // Too late: the metadata of the top was already sent.
                EntryKind::Directory => Ok(()),
                _ => Err(self.reader.problem(ArchiveProblem::BadName)),
            };
        }
        let is_directory = matches!(entry.kind, EntryKind::Directory);
        let selection = self.filter.select(&path, is_directory);
        if selection == Selection::Skip {
            if !is_directory {
                self.record_path(&path, PathKind::Skipped)?;
            }
            return Ok(());
        }
        self.sender.lost_xattrs += entry.lost_xattrs;
        match entry.kind {
            EntryKind::Directory => {
                if self
                    .paths
                    .get(&path)
                    .is_some_and(|kind| *kind != PathKind::Directory)
                {
                    return Err(self.reader.problem(ArchiveProblem::KindChanged));
                }
                self.paths
                    .charge(&path, path.len() + META_SIZE + entry.meta.xattrs_size())?;
                self.directories.insert(sort_key(&path), entry.meta);
                if selection == Selection::Include {
                    self.enter(&path)?;
                }
                Ok(())
            }
            EntryKind::File { stored, sparse } => {
                let name = self.begin(&path, PathKind::File)?;
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
                    return Err(self.reader.problem(ArchiveProblem::BadSymlinkTarget));
                }
                let name = self.begin(&path, PathKind::Symlink)?;
                self.sender.symlink(name, &entry.meta, &target, &path)
            }
            EntryKind::HardLink { target } => self.hard_link(&path, &target),
            EntryKind::CharacterDevice(_) => self.skip_entry(&path, "it is a character device"),
            EntryKind::BlockDevice(_) => self.skip_entry(&path, "it is a block device"),
            EntryKind::Fifo => self.skip_entry(&path, "it is a named pipe"),
            EntryKind::Label => self.skip_entry(&path, "it is the archive's label"),
            EntryKind::Unknown(_) => Err(self.reader.problem(ArchiveProblem::Unsupported)),
        }
    }

    fn hard_link(&mut self, path: &[u8], to: &[u8]) -> Result<(), TreeError> {
        match self.paths.get(to) {
            Some(PathKind::File) if to != path => {
                let name = self.begin(path, PathKind::File)?;
                self.sender.hard_link(name, to, path)
            }
            Some(PathKind::Skipped) => {
                self.skip_entry(path, "it is a hard link to an entry that was left out")
            }
            _ => Err(self.reader.problem(ArchiveProblem::BadHardLink)),
        }
    }

    fn whole_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        // The caller checked that it fits into a record.
        self.buffer.clear();
        self.buffer.resize(usize::try_from(size).unwrap_or(0), 0);
        self.reader.read_exact(&mut self.buffer)?;
        self.sender.whole_file(name, meta, &self.buffer, path)
    }

    fn plain_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.sender.budget.check_data(size, path)?;
        self.sender.begin_file(name, meta, size, path)?;
        self.file_data(size, path)?;
        self.sender.end_file(path)
    }

    fn sparse_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        map: &SparseMap,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.sender.begin_file(name, meta, map.length, path)?;
        let mut end = 0;
        for (offset, length) in &map.parts {
            self.sender.hole(offset - end, path)?;
            self.file_data(*length, path)?;
            end = offset + length;
        }
        self.sender.hole(map.length - end, path)?;
        self.sender.end_file(path)
    }

    fn file_data(&mut self, mut left: u64, path: &[u8]) -> Result<(), TreeError> {
        let reader = &mut self.reader;
        while left > 0 {
            let count = self.sender.file_data(left, path, |piece, max| {
                let start = piece.len();
                piece.resize(start + max, 0);
                let count = reader.read(piece.get_mut(start..).unwrap_or_default())?;
                piece.truncate(start + count);
                Ok(())
            })?;
            if count == 0 {
                return Err(self.reader.problem(ArchiveProblem::BadNumber));
            }
            left -= count;
        }
        Ok(())
    }

    fn skip_entry(&mut self, path: &[u8], reason: &str) -> Result<(), TreeError> {
        self.record_path(path, PathKind::Skipped)?;
        self.sender.skipped.add(path, reason.to_owned());
        Ok(())
    }

    /// Enters the parent directory of an entry, and counts the entry. Returns
    /// its name in there.
    fn begin<'p>(&mut self, path: &'p [u8], kind: PathKind) -> Result<&'p [u8], TreeError> {
        let (parent, name) = split(path);
        self.enter(parent)?;
        self.record_path(path, kind)?;
        self.sender.begin(path)?;
        Ok(name)
    }

    /// Records the kind of a path. A later entry replaces an earlier one, but a
    /// directory stays a directory.
    fn record_path(&mut self, path: &[u8], kind: PathKind) -> Result<(), TreeError> {
        match self.paths.insert(path, kind)? {
            Some(before) if (before == PathKind::Directory) != (kind == PathKind::Directory) => {
                Err(self.reader.problem(ArchiveProblem::KindChanged))
            }
            _ => Ok(()),
        }
    }

    /// Enters a directory, and creates it and its parents if they are new.
    fn enter(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.leave_until(path)?;
        while self.path.len() < path.len() {
            let next = self.next_component(path);
            check_depth(self.depth + 1, next)?;
            match self.paths.get(next) {
                Some(PathKind::Directory) => {}
                Some(_) => return Err(self.reader.problem(ArchiveProblem::NotInDirectory)),
                None => {
                    self.record_path(next, PathKind::Directory)?;
                    self.sender.begin(next)?;
                }
            }
            self.enter_directory(next, None)?;
        }
        Ok(())
    }

    /// Leaves directories until the current one contains the path.
    fn leave_until(&mut self, path: &[u8]) -> Result<(), TreeError> {
        while !is_within(path, &self.path) {
            self.path.truncate(split(&self.path).0.len());
            self.depth -= 1;
            self.sender.leave()?;
        }
        Ok(())
    }

    fn next_component<'p>(&self, path: &'p [u8]) -> &'p [u8] {
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

    fn enter_directory(&mut self, path: &[u8], meta: Option<&MetaBuf>) -> Result<(), TreeError> {
        self.sender.enter(split(path).1, meta, path)?;
        self.path.clear();
        self.path.extend_from_slice(path);
        self.depth += 1;
        Ok(())
    }

    /// Enters each directory again, to send its metadata.
    fn finish_directories(&mut self) -> Result<(), TreeError> {
        self.leave_until(b"")?;
        for (key, meta) in std::mem::take(&mut self.directories) {
            let path = path_from_sort_key(key);
            // A directory that the filter does not select exists only if
            // something in it was sent.
            if self.paths.get(&path) == Some(&PathKind::Directory) {
                self.enter(split(&path).0)?;
                self.enter_directory(&path, Some(&meta))?;
            }
        }
        Ok(())
    }
}

/// The memory that the metadata of a directory takes until the end.
const META_SIZE: usize = std::mem::size_of::<MetaBuf>();

impl ArchiveEntry {
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

fn sort_key(path: &[u8]) -> Vec<u8> {
    let separator = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    path.iter().map(separator).collect()
}

fn path_from_sort_key(mut key: Vec<u8>) -> Vec<u8> {
    for byte in &mut key {
        if *byte == 0 {
            *byte = b'/';
        }
    }
    key
}
