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

/// How much is read at once: long enough that a call costs nothing, short
/// enough to look at the clock in between.
pub(super) const PIECE: usize = 256 << 10;

impl Disk {
    /// [`read`](Self::read) takes no more than this.
    pub const DEFAULT_READ_LIMIT: u64 = 64 << 20;

    /// The bytes of a file, up to [64 MiB](Self::DEFAULT_READ_LIMIT); use
    /// [`read_with`](Self::read_with) or [`reader`](Self::reader) for more.
    /// Symlinks are followed.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], [`DiskError::WrongKind`] if it is no regular
    /// file, [`DiskError::Limit`] if it is larger, or why it cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, DiskError> {
        self.read_with(path, ReadOptions::new().limit(Self::DEFAULT_READ_LIMIT))
    }

    /// A part of a file, or a file with another limit. Whoever names neither has
    /// the limit of [`read`](Self::read): a file can claim to be larger than any
    /// memory.
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
            return Err(exceeded(DiskLimit::Wanted, limit, path));
        }
        let mut bytes = Vec::new();
        let range = options.offset..options.offset.saturating_add(length);
        self.pieces(&inode, range, path, &mut self.budget(), |piece| {
            bytes.extend_from_slice(piece);
        })?;
        Ok(bytes)
    }

    /// A file to read from and seek in. Symlinks are followed.
    ///
    /// Each call does little, but a file can claim to have more bytes than there
    /// are atoms in the world: whoever reads sets a limit.
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

    /// The same for a file that was told by a [`walk`](Self::walk) of this disk:
    /// its path need not be looked up again.
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

    /// The SHA-256 of a file's bytes. Symlinks are followed.
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
        self.pieces(inode, 0..inode.size, path, budget, |piece| {
            hasher.update(piece);
        })?;
        Ok(hasher.finalize().into())
    }

    /// Gives a part of a file away piece by piece, within the budget.
    fn pieces(
        &self,
        inode: &Inode,
        range: Range<u64>,
        path: &[u8],
        budget: &mut Budget,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), DiskError> {
        let length = range.end.saturating_sub(range.start);
        // One file that claims too much must not use up what others may have.
        budget.data(length, path)?;
        let mut buffer = vec![0; at_most(length, PIECE)];
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
    if inode.kind == Kind::File {
        return Ok(());
    }
    Err(DiskError::WrongKind {
        path: shown(path),
        wanted: "regular file",
    })
}

/// As much as there is, but no more than so much.
pub(super) fn at_most(length: u64, most: usize) -> usize {
    usize::try_from(length).map_or(most, |length| length.min(most))
}

/// A file of a disk, to read from and seek in: see [`Disk::reader`].
///
/// An error that comes from what the disk holds has a [`DiskError`] inside.
#[derive(Debug)]
pub struct DiskFileReader<'d> {
    disk: &'d Disk,
    path: Vec<u8>,
    inode: Inode,
    position: u64,
}

impl DiskFileReader<'_> {
    /// How long the file is.
    pub fn size(&self) -> u64 {
        self.inode.size
    }
}

impl Read for DiskFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// One call is bounded, however large the buffer.
        const MOST: usize = 1 << 20;
        let length = buffer.len().min(MOST);
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
