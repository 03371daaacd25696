use alloc::vec::Vec;
use core::mem::MaybeUninit;

use rustix::{
    fd::BorrowedFd,
    fs::{FileType, RawDir},
    io::Errno,
};
use vmcell_wire::FailureKind;

use crate::worker::FileError;

/// In which order the names of a directory come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As the kernel has them: some at a time are in memory.
    Any,
    /// By their bytes: all of a directory's are in memory.
    Sorted,
}

/// The names of a directory, as they are asked for.
#[derive(Default)]
pub(super) struct Listing {
    /// The names, one after the other.
    bytes: Vec<u8>,
    /// What of them is still to come, the next one last.
    coming: Vec<Named>,
    is_complete: bool,
}

struct Named {
    start: u32,
    length: u8,
    kind: FileType,
}

/// A buffer for getdents64(2).
pub(super) type Buffer = [MaybeUninit<u8>];

/// So many bytes are a good buffer.
pub(super) const BUFFER: usize = 32 * 1024;

/// The names of a directory that is to be sorted take at most so many bytes.
const MAX_SORTED: usize = 8 * 1024 * 1024;

impl Listing {
    /// The next name, and what it is if the file system tells.
    pub(super) fn next(&mut self) -> Option<(&[u8], FileType)> {
        let named = self.coming.pop()?;
        Some((name(&self.bytes, &named), named.kind))
    }

    /// Whether no more can be [read](Self::read).
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads more names when there is no next one. After a failure there are
    /// none.
    pub(super) fn read(
        &mut self,
        directory: BorrowedFd<'_>,
        order: Order,
        buffer: &mut Buffer,
    ) -> Result<(), FileError> {
        self.bytes.clear();
        self.coming.clear();
        let read = match order {
            Order::Any => self.read_some(directory, buffer),
            Order::Sorted => self.read_all(directory, buffer),
        };
        if read.is_err() {
            self.is_complete = true;
            self.coming.clear();
        }
        read
    }

    fn read_all(
        &mut self,
        directory: BorrowedFd<'_>,
        buffer: &mut Buffer,
    ) -> Result<(), FileError> {
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
        self.coming
            .sort_unstable_by(|one, other| name(bytes, other).cmp(name(bytes, one)));
        Ok(())
    }

    /// Reads as much as the buffer holds.
    fn read_some(
        &mut self,
        directory: BorrowedFd<'_>,
        buffer: &mut Buffer,
    ) -> Result<(), FileError> {
        let mut entries = RawDir::new(directory, buffer);
        loop {
            let entry = match entries.next() {
                Some(Ok(entry)) => entry,
                // It was removed meanwhile: so it is empty.
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
                self.coming.push(Named {
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

fn name<'a>(bytes: &'a [u8], named: &Named) -> &'a [u8] {
    let start = usize::try_from(named.start).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::from(named.length));
    bytes.get(start..end).unwrap_or_default()
}
