use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{SeekFrom, seek},
    io::Errno,
};

use super::{
    error::ImageError,
    lock::{LockOutcome, LockedFile, lock_for_reading},
    mapping::FileId,
    platform::platform,
};

/// A regular file opened for reading, with its real path. It is locked against
/// writers unless it was opened with `allow_in_use`.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: LockedFile,
    /// With all symlinks resolved.
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    pub(super) length: u64,
}

impl Source {
    /// Opens a file in any directory.
    pub(super) fn open(path: &Path, allow_in_use: bool) -> Result<Self, ImageError> {
        Self::open_if(path, allow_in_use, &|_| true)
    }

    /// Opens a file only if it is in or below one of these directories, whose
    /// paths must be free of symlinks.
    pub(super) fn open_within(
        path: &Path,
        folders: &[PathBuf],
        allow_in_use: bool,
    ) -> Result<Self, ImageError> {
        Self::open_if(path, allow_in_use, &|real| {
            folders.iter().any(|folder| real.starts_with(folder))
        })
    }

    fn open_if(
        path: &Path,
        allow_in_use: bool,
        is_allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, ImageError> {
        let (file, real) = platform().open(path, is_allowed)?;
        let file = LockedFile::new(file);
        // Take the lock before reading anything, including the length.
        if !allow_in_use {
            check_not_in_use(&file, &real)?;
        }
        let metadata = file.metadata().map_err(ImageError::read(path))?;
        Ok(Self {
            file,
            path: real,
            id: FileId {
                device: metadata.dev(),
                inode: metadata.ino(),
            },
            length: metadata.len(),
        })
    }

    /// Returns its directory.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Returns whether the file has at least `end` bytes. A file that is being
    /// written may have grown since it was opened.
    pub(super) fn reaches(&self, end: u64) -> bool {
        let grown = || self.file.metadata().is_ok_and(|file| end <= file.len());
        end <= self.length || grown()
    }

    /// Fills the buffer, with zeros beyond the end of the file.
    pub(super) fn read_padded(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.file.read_at(buffer, offset) {
                Ok(0) => {
                    buffer.fill(0);
                    break;
                }
                Ok(count) => {
                    offset += count as u64;
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns whether there is data or a hole at `offset`, and where it ends,
    /// at most `end`: lseek(2).
    pub(super) fn data_or_hole(&self, offset: u64, end: u64) -> io::Result<(RegionKind, u64)> {
        match seek(&*self.file, SeekFrom::Data(offset)) {
            // Only a hole up to the end of the file.
            Err(Errno::NXIO) => return Ok((RegionKind::Hole, end)),
            // The file system does not support holes.
            Err(Errno::INVAL | Errno::NOTTY | Errno::NOTSUP) => return Ok((RegionKind::Data, end)),
            Err(errno) => return Err(errno.into()),
            Ok(data) if data > offset => return Ok((RegionKind::Hole, data.min(end))),
            Ok(_) => {}
        }
        match seek(&*self.file, SeekFrom::Hole(offset)) {
            Ok(hole) if hole > offset => Ok((RegionKind::Data, hole.min(end))),
            // A hole was just punched, or the end of the data is not known.
            Ok(_) | Err(Errno::NXIO) => Ok((RegionKind::Data, end)),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Whether a part of a file is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionKind {
    Data,
    Hole,
}

fn check_not_in_use(file: &File, path: &Path) -> Result<(), ImageError> {
    let path = path.to_owned();
    match lock_for_reading(file) {
        Ok(LockOutcome::Acquired) => Ok(()),
        Ok(LockOutcome::InUse) => Err(ImageError::InUse { path }),
        Err(source) => Err(ImageError::Lock { path, source }),
    }
}
