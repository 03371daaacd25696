use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd as _},
        unix::{
            ffi::OsStringExt as _,
            fs::{FileExt as _, MetadataExt as _},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags, SeekFrom, fstat, open, readlink, seek},
    io::Errno,
};

use super::{
    error::ImageError,
    lock::{LockHolder, LockedFile, lock_for_reading},
    mapping::FileId,
};

/// A regular file that is open for reading, and where it really is. Nobody who
/// asks writes it meanwhile, unless a look at it may be torn.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: LockedFile,
    /// With all symlinks resolved.
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    pub(super) length: u64,
}

impl Source {
    /// Opens a file wherever it is.
    pub(super) fn open(path: &Path, torn: bool) -> Result<Self, ImageError> {
        Self::open_if(path, torn, |_| true)
    }

    /// Opens a file only if it is beneath one of these folders, which have no
    /// symlinks in their names.
    pub(super) fn open_beneath(
        path: &Path,
        folders: &[PathBuf],
        torn: bool,
    ) -> Result<Self, ImageError> {
        Self::open_if(path, torn, |real| {
            folders.iter().any(|folder| real.starts_with(folder))
        })
    }

    fn open_if(
        path: &Path,
        torn: bool,
        allowed: impl FnOnce(&Path) -> bool,
    ) -> Result<Self, ImageError> {
        // `O_PATH` finds the file without opening it: opening a device or a pipe
        // may do something. What is looked at and opened afterwards is what was
        // found here, whatever happens to the name: open(2), proc(5).
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = open(path, flags, Mode::empty()).map_err(ImageError::read(path))?;
        let stat = fstat(&found).map_err(ImageError::read(path))?;
        let link = link_to(&found);
        let real = real_path(&link).map_err(ImageError::read(path))?;
        if !allowed(&real) {
            return Err(ImageError::Outside { path: real });
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ImageError::NotAFile { path: real });
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = open(&link, flags, Mode::empty()).map_err(ImageError::read(path))?;
        let file = LockedFile::new(File::from(file));
        // Nothing is looked at before that, not even how long it is.
        if !torn {
            check_use(&file, &real)?;
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

    /// The folder it is in.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Whether the file goes on to this place. One that is being written may
    /// have grown.
    pub(super) fn reaches(&self, end: u64) -> bool {
        let grown = || self.file.metadata().is_ok_and(|file| end <= file.len());
        end <= self.length || grown()
    }

    /// Fills the buffer; beyond the end of the file there are zeroes.
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

    /// Whether there is data at `offset` or a hole, and where that ends, at
    /// `end` at the latest: lseek(2).
    pub(super) fn data_or_hole(&self, offset: u64, end: u64) -> io::Result<(Stored, u64)> {
        match seek(&*self.file, SeekFrom::Data(offset)) {
            // Nothing but a hole up to the end of the file.
            Err(Errno::NXIO) => return Ok((Stored::Hole, end)),
            // The file system knows no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((Stored::Data, end)),
            Err(errno) => return Err(errno.into()),
            Ok(data) if data > offset => return Ok((Stored::Hole, data.min(end))),
            Ok(_) => {}
        }
        match seek(&*self.file, SeekFrom::Hole(offset)) {
            Ok(hole) if hole > offset => Ok((Stored::Data, hole.min(end))),
            // Somebody punched a hole in between, or there is no telling.
            Ok(_) | Err(Errno::NXIO) => Ok((Stored::Data, end)),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// What a file has at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Data,
    Hole,
}

fn check_use(file: &File, path: &Path) -> Result<(), ImageError> {
    let path = path.to_owned();
    match lock_for_reading(file) {
        Ok(LockHolder::Ours) => Ok(()),
        Ok(LockHolder::Others) => Err(ImageError::InUse { path }),
        Err(source) => Err(ImageError::Lock { path, source }),
    }
}

/// A name for a file that is open: proc(5).
pub(super) fn link_to(file: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

fn real_path(link: &Path) -> Result<PathBuf, Errno> {
    let path = readlink(link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}
