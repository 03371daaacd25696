use std::{ops::Range, os::unix::ffi::OsStrExt as _};

use regex::bytes::Regex;

use super::{GrepMatch, MatchedLine};
use vmcell_tree::Entry;

use crate::{
    Disk, DiskError, DiskProblem,
    budget::Budget,
    content::{CHUNK_SIZE, at_most},
    ext4::{Inode, Run, RunPlace, Runs},
};

/// Longer lines are searched in parts of this length.
const MAX_LINE: usize = 1 << 20;

/// A file with a zero byte among its first bytes is binary, as in git.
const BINARY_PREFIX: usize = 8000;

/// Maximum length of the text of a match.
const MAX_TEXT: usize = 4096;

/// How much text of a long line is shown before the match.
const TEXT_BEFORE_MATCH: usize = 256;

/// Searches a file line by line.
pub(super) struct Search<'d> {
    disk: &'d Disk,
    inode: Inode,
    entry: Entry,
    /// The remaining runs of the file, and what is left of the current one.
    runs: Runs<'d>,
    run: Option<Run>,
    /// Data read from the file. What was not searched yet begins at `start`.
    buffer: Vec<u8>,
    start: usize,
    /// The offset of the buffer in the file.
    offset: u64,
    /// The number of complete lines so far.
    lines: u64,
    /// The offset of the current line in the file.
    line_offset: u64,
    is_binary: bool,
    /// Whether each matching line of a binary file is a match.
    binary_lines: bool,
    is_at_end: bool,
}

/// The result of one search step.
pub(super) enum SearchStep {
    Found(GrepMatch),
    Failed(DiskError),
    Ended,
}

impl<'d> Search<'d> {
    pub(super) fn new(
        disk: &'d Disk,
        entry: Entry,
        binary_lines: bool,
    ) -> Result<Self, DiskProblem> {
        let path = entry.path.as_os_str().as_bytes();
        // A walk returned the entry, so its inode number fits.
        let inode = disk.ext4.inode(u32::try_from(entry.inode).unwrap_or(0));
        let inode = inode.map_err(|error| DiskProblem::new(path, DiskError::at(path, error)))?;
        Ok(Self {
            disk,
            runs: disk.ext4.runs(&inode),
            inode,
            entry,
            run: None,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            lines: 0,
            line_offset: 0,
            is_binary: false,
            binary_lines,
            is_at_end: false,
        })
    }

    pub(super) fn path(&self) -> &[u8] {
        self.entry.path.as_os_str().as_bytes()
    }

    /// Searches for the next matching line.
    pub(super) fn next(&mut self, regex: &Regex, budget: &mut Budget) -> SearchStep {
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let end = memchr::memchr(b'\n', rest);
            let length = match end {
                Some(end) => end,
                None if rest.len() >= MAX_LINE => MAX_LINE,
                None if !self.is_at_end => match self.fill(budget) {
                    Ok(()) => continue,
                    Err(error) => return SearchStep::Failed(error),
                },
                None if rest.is_empty() => return SearchStep::Ended,
                None => rest.len(),
            };
            let line = rest.get(..length).unwrap_or_default();
            let found = regex.find(line).map(|found| found.range());
            let found = found.map(|range| self.found(line, range, end.is_some()));
            self.start += length + usize::from(end.is_some());
            if end.is_some() {
                self.lines += 1;
                self.line_offset = self.offset + self.start as u64;
            }
            if let Some(GrepMatch::Binary { .. }) = found
                && !self.binary_lines
            {
                // Report one match per binary file.
                self.buffer.clear();
                self.start = 0;
                self.is_at_end = true;
            }
            if let Some(found) = found {
                return SearchStep::Found(found);
            }
        }
    }

    fn found(&self, line: &[u8], range: Range<usize>, is_ended: bool) -> GrepMatch {
        let path = self.entry.path.clone();
        if self.is_binary {
            return GrepMatch::Binary { path };
        }
        let begins_here = self.line_offset == self.offset + self.start as u64;
        let from = if range.end <= MAX_TEXT {
            0
        } else {
            range.start.saturating_sub(TEXT_BEFORE_MATCH)
        };
        let to = line.len().min(from + MAX_TEXT);
        let is_whole = from == 0 && to == line.len() && begins_here;
        GrepMatch::Line(MatchedLine {
            path,
            number: self.lines + 1,
            offset: self.line_offset,
            text: line.get(from..to).unwrap_or_default().to_vec(),
            matched: range.start - from..range.end.min(to) - from,
            is_truncated: !(is_whole && (is_ended || self.is_at_end)),
        })
    }

    /// Reads more data, or detects the end of the file.
    fn fill(&mut self, budget: &mut Budget) -> Result<(), DiskError> {
        budget.check_time(self.path())?;
        let run = match self.run.take().map(Ok).or_else(|| self.runs.next()) {
            Some(run) => run.map_err(|error| DiskError::at(self.path(), error))?,
            None => {
                self.is_at_end = true;
                return Ok(());
            }
        };
        self.buffer.drain(..self.start);
        self.offset += self.start as u64;
        self.start = 0;
        if matches!(run.place, RunPlace::Hole | RunPlace::Unwritten(_)) {
            self.skip(run);
            return Ok(());
        }
        let length = at_most(run.length, CHUNK_SIZE);
        budget.count_bytes(length as u64, self.path())?;
        let before = self.buffer.len();
        self.buffer.resize(before + length, 0);
        let part = self.buffer.get_mut(before..).unwrap_or_default();
        let count = self.disk.ext4.read(&self.inode, run.offset, part);
        let count = count.map_err(|error| DiskError::at(self.path(), error))?;
        self.buffer.truncate(before + count);
        if self.offset == 0 && before == 0 {
            let beginning = self.buffer.get(..BINARY_PREFIX).unwrap_or(&self.buffer);
            self.is_binary = memchr::memchr(0, beginning).is_some();
        }
        let left = run.length.saturating_sub(count as u64);
        if count == 0 {
            self.is_at_end = true;
        } else if left > 0 {
            self.run = Some(Run {
                offset: run.offset + count as u64,
                length: left,
                place: run.place,
            });
        }
        Ok(())
    }

    /// Skips a hole, which ends the line before it and makes the file binary.
    fn skip(&mut self, run: Run) {
        self.is_binary = true;
        if self.buffer.is_empty() {
            self.offset = run.offset.saturating_add(run.length);
            return;
        }
        // Search what precedes the hole first; the next call skips it.
        self.buffer.push(b'\n');
        self.run = Some(run);
    }
}
