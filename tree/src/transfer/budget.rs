use std::fmt;

use vmcell_wire::limits::{MAX_DEPTH, MAX_PATH};

use super::error::{TreeError, display_path};

/// How large a tree may be. A larger one is rejected before the excess is
/// written or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeLimits {
    /// The sum of the file contents in bytes; 16 GiB by default. Holes do not
    /// count, except in archives, which store them as zeros.
    pub bytes: u64,
    /// The sum of the file lengths, including holes; 1 TiB by default. Holes
    /// take no disk space, but a later copy of the files may fill them.
    pub length: u64,
    /// The number of entries; a million by default.
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

/// The limit that a tree exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeLimit {
    /// Bytes of file contents: [`TreeLimits::bytes`].
    Bytes,
    /// Length of files, including holes: [`TreeLimits::length`].
    Length,
    /// Number of entries: [`TreeLimits::entries`].
    Entries,
    /// The depth of nested directories. This limit cannot be raised.
    Depth,
    /// The length of a path. This limit cannot be raised.
    Path,
    /// The memory for the paths of an archive. This limit cannot be raised.
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

/// Counts how much of its limits a tree has used.
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

    /// Counts an entry.
    pub(super) fn charge_entry(&mut self, path: &[u8]) -> Result<(), TreeError> {
        if path.len() >= MAX_PATH {
            return Err(limit_exceeded(TreeLimit::Path, MAX_PATH as u64, path));
        }
        let limit = self.limits.entries;
        self.entries = within(self.entries, 1, limit)
            .ok_or_else(|| limit_exceeded(TreeLimit::Entries, limit, path))?;
        Ok(())
    }

    /// Checks that `more` entries stay within the limit, without counting them.
    pub(super) fn check_entries(&self, more: usize, path: &[u8]) -> Result<(), TreeError> {
        let limit = self.limits.entries;
        within(self.entries, more as u64, limit)
            .map(|_| ())
            .ok_or_else(|| limit_exceeded(TreeLimit::Entries, limit, path))
    }

    /// Counts bytes of a file.
    pub(super) fn charge_data(&mut self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        self.reserved = self.reserved.saturating_sub(count);
        self.check_data(count, path)?;
        self.bytes += count;
        self.charge_hole(count, path)
    }

    /// Reserves bytes that will be written in any case.
    pub(super) fn reserve(&mut self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        self.check_data(count, path)?;
        self.reserved = count;
        Ok(())
    }

    /// Counts the rest of the reserved bytes.
    pub(super) fn charge_reserved(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.charge_data(self.reserved, path)
    }

    /// Checks that `count` bytes stay within the limit, without counting them.
    pub(super) fn check_data(&self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        let limit = self.limits.bytes;
        self.bytes
            .checked_add(self.reserved)
            .and_then(|used| within(used, count, limit))
            .map(|_| ())
            .ok_or_else(|| limit_exceeded(TreeLimit::Bytes, limit, path))
    }

    /// Counts the length of a file, without its content.
    pub(super) fn charge_hole(&mut self, count: u64, path: &[u8]) -> Result<(), TreeError> {
        let limit = self.limits.length;
        self.length = within(self.length, count, limit)
            .ok_or_else(|| limit_exceeded(TreeLimit::Length, limit, path))?;
        Ok(())
    }
}

/// Checks that another directory may be entered when `open` ones are open.
pub(super) fn check_depth(open: usize, path: &[u8]) -> Result<(), TreeError> {
    if open < MAX_DEPTH {
        return Ok(());
    }
    Err(limit_exceeded(TreeLimit::Depth, MAX_DEPTH as u64, path))
}

pub(super) fn limit_exceeded(what: TreeLimit, limit: u64, path: &[u8]) -> TreeError {
    TreeError::Limit {
        what,
        limit,
        path: display_path(path),
    }
}

fn within(used: u64, more: u64, limit: u64) -> Option<u64> {
    used.checked_add(more).filter(|sum| *sum <= limit)
}
