use std::fmt;

use vmcell_wire::limits::{MAX_DEPTH, MAX_PATH};

use super::error::{TreeError, shown};

/// How large a tree may be. What goes beyond is an error, before it is written
/// or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeLimits {
    /// How many bytes its files may hold together; 16 GiB unless told. Holes do
    /// not count, but in an archive they do: there they are written as zeros.
    pub bytes: u64,
    /// How long its files may be together, holes included; 1 TiB unless told.
    /// Holes take no room, but whoever copies the files later may fill a disk.
    pub length: u64,
    /// How many entries it may have; a million unless told.
    pub entries: u64,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            bytes: 16 << 30,
            length: 1 << 40,
            entries: 1_000_000,
        }
    }
}

/// What a tree can have too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeLimit {
    /// Bytes in files.
    Bytes,
    /// Length of files, holes included.
    Length,
    /// Entries.
    Entries,
    /// Directories within each other. This limit cannot be raised.
    Depth,
    /// Bytes in a path. This limit cannot be raised.
    Path,
    /// Memory for the names of an archive. This limit cannot be raised.
    Names,
}

impl fmt::Display for TreeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Length => "bytes with holes",
            Self::Entries => "entries",
            Self::Depth => "directories within each other",
            Self::Path => "bytes for a path",
            Self::Names => "bytes for names",
        })
    }
}

/// How much of its limits a tree has used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    limits: TreeLimits,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    length: u64,
    /// Bytes that will be written in any case.
    reserved: u64,
}

impl Budget {
    pub(super) fn new(limits: TreeLimits) -> Self {
        Self {
            limits,
            entries: 0,
            bytes: 0,
            length: 0,
            reserved: 0,
        }
    }

    /// One more entry.
    pub(super) fn entry(&mut self, path: &[u8]) -> Result<(), TreeError> {
        if path.len() >= MAX_PATH {
            return Err(exceeded(TreeLimit::Path, MAX_PATH as u64, path));
        }
        let limit = self.limits.entries;
        self.entries = within(self.entries, 1, limit)
            .ok_or_else(|| exceeded(TreeLimit::Entries, limit, path))?;
        Ok(())
    }

    /// So many entries more would be too many.
    pub(super) fn check_entries(&self, more: usize, path: &[u8]) -> Result<(), TreeError> {
        let limit = self.limits.entries;
        within(self.entries, more as u64, limit)
            .map(|_| ())
            .ok_or_else(|| exceeded(TreeLimit::Entries, limit, path))
    }

    /// More bytes of a file.
    pub(super) fn data(&mut self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        self.reserved = self.reserved.saturating_sub(count);
        self.check_data(count, path)?;
        self.bytes += count;
        self.hole(count, path)
    }

    /// Sets bytes aside that will be written in any case.
    pub(super) fn reserve(&mut self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        self.check_data(count, path)?;
        self.reserved = count;
        Ok(())
    }

    /// What is left of those has been written.
    pub(super) fn settle(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.data(self.reserved, path)
    }

    /// So many bytes more would be too many.
    pub(super) fn check_data(&self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        let limit = self.limits.bytes;
        self.bytes
            .checked_add(self.reserved)
            .and_then(|used| within(used, count, limit))
            .map(|_| ())
            .ok_or_else(|| exceeded(TreeLimit::Bytes, limit, path))
    }

    /// More length of a file.
    pub(super) fn hole(&mut self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        let limit = self.limits.length;
        self.length = within(self.length, count, limit)
            .ok_or_else(|| exceeded(TreeLimit::Length, limit, path))?;
        Ok(())
    }
}

/// Whether a directory may be entered when so many are open.
pub(super) fn check_depth(open: usize, path: &[u8]) -> Result<(), TreeError> {
    if open < MAX_DEPTH {
        return Ok(());
    }
    Err(exceeded(TreeLimit::Depth, MAX_DEPTH as u64, path))
}

pub(super) fn exceeded(what: TreeLimit, limit: u64, path: &[u8]) -> TreeError {
    TreeError::Limit {
        what,
        limit,
        path: shown(path),
    }
}

fn within(used: u64, more: u64, limit: u64) -> Option<u64> {
    used.checked_add(more).filter(|sum| *sum <= limit)
}
