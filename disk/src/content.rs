use std::{
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use sha2::{Digest as _, Sha256};

use super::{
    Disk, DiskError, DiskLimit,
    budget::{Budget, exceeded},
    ext4::{Inode, Kind, SymlinkPolicy},
    path::shown,
};
use vmcell_tree::{Entry, ReadOptions};

/// Number of bytes read at a time: large enough that the overhead of a call is
/// negligible, small enough to check the time limit in between.
pub(super) const CHUNK_SIZE: usize = 256 << 10;

impl Disk {
    /// The size limit of [`read`](Self::read).
    pub const DEFAULT_READ_LIMIT: u64 = 64 << 20;

    /// Reads a whole file of up to [64 MiB](Self::DEFAULT_READ_LIMIT). Use
    /// [`read_with`](Self::read_with) or [`reader`](Self::reader) for larger
    /// ones. Follows symlinks.
    ///
    /// # Errors
    /// [`DiskError::NotFound`]; [`DiskError::DanglingLink`];
    /// [`DiskError::IsDirectory`]; [`DiskError::WrongKind`] if it is not a regular
    /// file; [`DiskError::Limit`] if it is larger than the limit;
    /// [`DiskError::Damaged`], [`DiskError::Encrypted`] or [`DiskError::Read`]
    /// if it cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, DiskError> {
        self.read_with(path, ReadOptions::new().limit(Self::DEFAULT_READ_LIMIT))
    }

    /// Reads a part of a file, or a file with a different size limit. Without a
    /// length and a limit, the limit of [`read`](Self::read) applies: a damaged
    /// or hostile disk can claim a file larger than memory.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn read_with(
        &self,
        path: impl AsRef<Path>,
        options: ReadOptions,
    ) -> Result<Vec<u8>, DiskError> {
        let (inode, path) = self.find_file(path.as_ref())?;
        let rest = inode.size.saturating_sub(options.offset);
        let length = rest.min(options.length);
        let limit = match options.limit {
            None if options.length == u64::MAX => Some(Self::DEFAULT_READ_LIMIT),
            limit => limit,
        };
        if let Some(limit) = limit.filter(|limit| length > *limit) {
            return Err(exceeded(DiskLimit::Read, limit, path));
        }
        let mut bytes = Vec::new();
        let range = options.offset..options.offset.saturating_add(length);
        self.read_chunks(&inode, range, path, &mut self.budget(), |chunk| {
            bytes.extend_from_slice(chunk);
        })?;
        Ok(bytes)
    }

    /// Opens a file for reading and seeking. Follows symlinks.
    ///
    /// [`DiskLimits`](crate::DiskLimits) do not apply to the reader. The size
    /// in the inode is not verified and can be enormous, so limit how much you
    /// read, for example with [`Read::take`].
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn reader(&self, path: impl AsRef<Path>) -> Result<DiskFileReader<'_>, DiskError> {
        let (inode, path) = self.find_file(path.as_ref())?;
        Ok(DiskFileReader {
            disk: self,
            path: path.to_vec(),
            inode,
            position: 0,
        })
    }

    /// Opens a file that a [`walk`](Self::walk) of this disk returned, without
    /// looking up its path again.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn reader_of(&self, entry: &Entry) -> Result<DiskFileReader<'_>, DiskError> {
        let path = entry.path.as_os_str().as_bytes();
        let number = u32::try_from(entry.inode).unwrap_or(0);
        let inode = self.ext4.inode(number);
        let inode = inode.map_err(|error| DiskError::at(path, error))?;
        check_file(&inode, path)?;
        Ok(DiskFileReader {
            disk: self,
            path: path.to_vec(),
            inode,
            position: 0,
        })
    }

    /// Returns the SHA-256 digest of a file's contents. Follows symlinks.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn sha256(&self, path: impl AsRef<Path>) -> Result<[u8; 32], DiskError> {
        let (inode, path) = self.find_file(path.as_ref())?;
        self.digest(&inode, path, &mut self.budget())
    }

    fn find_file<'p>(&self, path: &'p Path) -> Result<(Inode, &'p [u8]), DiskError> {
        let (inode, path) = self.find_inode(path, SymlinkPolicy::All)?;
        check_file(&inode, path)?;
        Ok((inode, path))
    }

    pub(super) fn digest(
        &self,
        inode: &Inode,
        path: &[u8],
        budget: &mut Budget,
    ) -> Result<[u8; 32], DiskError> {
        let mut hasher = Sha256::new();
        self.read_chunks(inode, 0..inode.size, path, budget, |chunk| {
            hasher.update(chunk);
        })?;
        Ok(hasher.finalize().into())
    }

    /// Calls `take` with each chunk of a part of a file, within the budget.
    fn read_chunks(
        &self,
        inode: &Inode,
        range: Range<u64>,
        path: &[u8],
        budget: &mut Budget,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), DiskError> {
        let length = range.end.saturating_sub(range.start);
        // Count the whole range first, so that a file that is too large does
        // not use up the bytes of the others.
        budget.count_bytes(length, path)?;
        let mut buffer = vec![0; at_most(length, CHUNK_SIZE)];
        let mut offset = range.start;
        while offset < range.end {
            budget.check_time(path)?;
            let wanted = at_most(range.end - offset, buffer.len());
            let part = buffer.get_mut(..wanted).unwrap_or_default();
            let count = self.ext4.read(inode, offset, part);
            let count = count.map_err(|error| DiskError::at(path, error))?;
            if count == 0 {
                break;
            }
            take(part.get(..count).unwrap_or_default());
            offset += count as u64;
        }
        Ok(())
    }
}

fn check_file(inode: &Inode, path: &[u8]) -> Result<(), DiskError> {
    let path = || shown(path);
    match inode.kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(DiskError::IsDirectory { path: path() }),
        _ => Err(DiskError::WrongKind {
            path: path(),
            wanted: "regular file",
        }),
    }
}

/// Returns `length`, or `most` if that is smaller.
pub(super) fn at_most(length: u64, most: usize) -> usize {
    usize::try_from(length).map_or(most, |length| length.min(most))
}

/// A file on a disk, for reading and seeking. Returned by [`Disk::reader`].
///
/// An [`io::Error`] caused by the contents of the disk wraps a [`DiskError`].
#[derive(Debug)]
pub struct DiskFileReader<'d> {
    disk: &'d Disk,
    path: Vec<u8>,
    inode: Inode,
    position: u64,
}

impl DiskFileReader<'_> {
    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.inode.size
    }
}

impl Read for DiskFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// The most that one call reads, however large the buffer is.
        const MAX_READ: usize = 1 << 20;
        let length = buffer.len().min(MAX_READ);
        let buffer = buffer.get_mut(..length).unwrap_or_default();
        let count = self.disk.ext4.read(&self.inode, self.position, buffer);
        let count = count.map_err(|error| io::Error::other(DiskError::at(&self.path, error)))?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for DiskFileReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.inode.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
