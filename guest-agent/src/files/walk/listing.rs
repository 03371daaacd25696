use alloc::vec::Vec;
use core::mem::MaybeUninit;

use rustix::{
    fd::BorrowedFd,
    fs::{FileType, RawDir},
    io::Errno,
};
use vmcell_wire::FailureKind;

use crate::worker::{FileError, FileResult};

/// The order in which the names of a directory are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The kernel's order; a part of them is in memory at a time.
    Any,
    /// Sorted by their bytes; all names of a directory are in memory.
    Sorted,
}

/// The names of a directory, read as needed.
#[derive(Default)]
pub(super) struct Listing {
    /// The names, one after the other.
    bytes: Vec<u8>,
    /// Those that were not returned yet, the next one last.
    remaining: Vec<NameRange>,
    is_complete: bool,
}

struct NameRange {
    start: u32,
    length: u8,
    kind: FileType,
}

/// A buffer for getdents64(2).
pub(super) type Buffer = [MaybeUninit<u8>];

/// The size of a buffer for getdents64(2).
pub(super) const BUFFER: usize = 32 * 1024;

/// How many bytes the names of a directory that is sorted may take.
const MAX_SORTED: usize = 8 * 1024 * 1024;

impl Listing {
    /// Returns the next name, and its type if the file system reports it.
    pub(super) fn next(&mut self) -> Option<(&[u8], FileType)> {
        let range = self.remaining.pop()?;
        Some((name(&self.bytes, &range), range.kind))
    }

    /// Returns whether all names were [read](Self::read).
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads more names when there is no next one. After a failure the listing is
    /// complete.
    pub(super) fn read(
        &mut self,
        directory: BorrowedFd<'_>,
        order: Order,
        buffer: &mut Buffer,
    ) -> FileResult<()> {
        self.bytes.clear();
        self.remaining.clear();
        let read = match order {
            Order::Any => self.read_some(directory, buffer),
            Order::Sorted => self.read_all(directory, buffer),
        };
        if read.is_err() {
            self.is_complete = true;
            self.remaining.clear();
        }
        read
    }

    fn read_all(&mut self, directory: BorrowedFd<'_>, buffer: &mut Buffer) -> FileResult<()> {
        while !self.is_complete {
            self.read_some(directory, buffer)?;
            if self.bytes.len() > MAX_SORTED {
                return Err(FileError::new(
                    FailureKind::Limit,
                    "the directory has too many names to be sorted: ask for them in any order",
                ));
            }
        }
        let bytes = &self.bytes;
        self.remaining
            .sort_unstable_by(|one, other| name(bytes, other).cmp(name(bytes, one)));
        Ok(())
    }

    /// Reads as many names as fit into the buffer.
    fn read_some(&mut self, directory: BorrowedFd<'_>, buffer: &mut Buffer) -> FileResult<()> {
        let mut entries = RawDir::new(directory, buffer);
        loop {
            let entry = match entries.next() {
                Some(Ok(entry)) => entry,
                // A directory that was removed meanwhile is empty.
                None | Some(Err(Errno::NOENT)) => {
                    self.is_complete = true;
                    return Ok(());
                }
                Some(Err(errno)) => {
                    return Err(FileError::errno(errno, "reading the directory"));
                }
            };
            let bytes = entry.file_name().to_bytes();
            if !matches!(bytes, b"." | b"..") {
                let too_much = |_| FileError::new(FailureKind::Limit, "a name in it is too long");
                self.remaining.push(NameRange {
                    start: u32::try_from(self.bytes.len()).map_err(too_much)?,
                    length: u8::try_from(bytes.len()).map_err(too_much)?,
                    kind: entry.file_type(),
                });
                self.bytes.extend_from_slice(bytes);
            }
            if entries.is_buffer_empty() {
                return Ok(());
            }
        }
    }
}

fn name<'a>(bytes: &'a [u8], range: &NameRange) -> &'a [u8] {
    let start = usize::try_from(range.start).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::from(range.length));
    bytes.get(start..end).unwrap_or_default()
}
