use std::{
    collections::HashSet,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
};

use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, fstat, ftruncate,
        futimens, mkdirat, openat, symlinkat, unlinkat, utimensat,
    },
    io::{Errno, pwrite},
};
use vmcell_wire::files::{FileKind, Metadata};

use super::{
    Ownership, ReceiveOptions, SpecialBits, Target, TopSymlink,
    atomic_file::{AtomicFile, TempFileKind, create_or_replace},
    target::Losses,
};
use crate::transfer::{
    TreeError,
    error::{display_path, display_path_below},
    host_entry::HostEntry,
    meta::{MetaBuf, kind_of, mode_of, timestamps},
    platform::{FileId, FoundEntry, file_id, is_symlink_error, platform},
    xattrs,
};

/// How often to retry creating a directory that another process keeps
/// replacing.
const MAX_ATTEMPTS: usize = 100;

/// Writes a tree as files of the host.
pub(super) struct DirectoryTarget {
    destination: PathBuf,
    ownership: Ownership,
    special_bits: SpecialBits,
    top_symlink: TopSymlink,
    temp_kind: TempFileKind,
    /// The open directories, the top first.
    levels: Vec<OpenDirectory>,
    file: Option<OpenFile>,
    /// The files that this transfer created. Hard links may lead only to these.
    created: HashSet<FileId>,
    losses: Losses,
}

struct OpenDirectory {
    directory: Arc<OwnedFd>,
    /// Applied when the directory is left.
    meta: Option<MetaBuf>,
}

struct OpenFile {
    temp: AtomicFile,
    location: Location,
    meta: MetaBuf,
    length: u64,
    /// Whether it ends with a hole, so that its length must be set.
    ends_with_hole: bool,
}

/// The directory and the name of an entry to be created.
struct Location {
    directory: Arc<OwnedFd>,
    name: Vec<u8>,
}

impl DirectoryTarget {
    pub(super) fn new(destination: PathBuf, options: &ReceiveOptions<'_>) -> Self {
        Self {
            destination,
            ownership: options.ownership,
            special_bits: options.special_bits,
            top_symlink: options.top_symlink,
            temp_kind: TempFileKind::detect(),
            levels: Vec::new(),
            file: None,
            created: HashSet::new(),
            losses: Losses::default(),
        }
    }

    /// Opens or creates the top directory. An existing one keeps its metadata.
    fn enter_top(&self, meta: Option<&Metadata<'_>>) -> Result<OpenDirectory, TreeError> {
        let entry = HostEntry::open(&self.destination)?;
        let (directory, is_created) = entry.open_directory(initial_mode(meta))?;
        Ok(OpenDirectory {
            directory: Arc::new(directory),
            meta: meta.filter(|_| is_created).map(MetaBuf::from_wire),
        })
    }

    /// Returns where to create a file or a symbolic link.
    fn locate(&self, name: &[u8], kind: FileType) -> Result<Location, TreeError> {
        if let Some(level) = self.levels.last() {
            return Ok(Location {
                directory: Arc::clone(&level.directory),
                name: name.to_vec(),
            });
        }
        let entry = HostEntry::open(&self.destination)?;
        entry.check_replaceable(kind)?;
        let (directory, name) = entry.into_parts();
        Ok(Location {
            directory: Arc::new(directory),
            name,
        })
    }

    fn permissions(&self, meta: &Metadata<'_>) -> Mode {
        let kept = match self.special_bits {
            SpecialBits::Drop => 0o777,
            SpecialBits::Keep => 0o7777,
        };
        Mode::from_raw_mode((meta.mode & kept).into())
    }

    /// Sets the metadata of an open file or directory, which has `mode` so far.
    fn set_meta(
        &mut self,
        file: BorrowedFd<'_>,
        meta: &Metadata<'_>,
        mode: Mode,
    ) -> Result<(), Errno> {
        // Attributes are set while the file is writable, and permissions after
        // the owner, because chown(2) clears bits.
        self.losses.xattrs += xattrs::write(file, meta.xattrs);
        let is_recorded = self.ownership == Ownership::Recorded;
        if is_recorded {
            let (uid, gid) = owner(meta);
            fchown(file, uid, gid)?;
        }
        let wanted = self.permissions(meta);
        if is_recorded || mode != wanted {
            fchmod(file, wanted)?;
        }
        futimens(file, &timestamps(meta.modified))
    }

    fn finish_file(&mut self, file: OpenFile) -> Result<(), Errno> {
        let descriptor = file.temp.as_fd();
        if file.ends_with_hole {
            ftruncate(descriptor, file.length)?;
        }
        let stat = fstat(descriptor)?;
        let mode = Mode::from_raw_mode(mode_of(&stat).into());
        self.set_meta(descriptor, &file.meta.as_wire(), mode)?;
        file.temp
            .persist(file.location.directory.as_fd(), &file.location.name)?;
        self.created.insert(file_id(&stat));
        Ok(())
    }

    fn create_symlink(
        &self,
        location: &Location,
        meta: &Metadata<'_>,
        target: &[u8],
    ) -> Result<(), Errno> {
        let directory = location.directory.as_fd();
        create_or_replace(directory, &location.name, |name| {
            symlinkat(target, directory, name)?;
            if self.ownership == Ownership::Recorded {
                let (uid, gid) = owner(meta);
                chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            let times = timestamps(meta.modified);
            utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Finds a file that this transfer created.
    fn find_created(&self, path: &[u8]) -> Option<Box<dyn FoundEntry>> {
        let top = &self.levels.first()?.directory;
        let file = platform().find(top.as_fd(), path).ok()?;
        let is_created = kind_of(file.stat()) == Some(FileKind::File)
            && self.created.contains(&file_id(file.stat()));
        is_created.then_some(file)
    }

    fn write_error(&self, path: &[u8]) -> impl Fn(Errno) -> TreeError {
        let path = display_path_below(&self.destination, path);
        move |errno| TreeError::write(path.clone(), errno)
    }
}

impl Target for DirectoryTarget {
    fn fills_holes(&self) -> bool {
        false
    }

    fn enter(
        &mut self,
        name: &[u8],
        meta: Option<&Metadata<'_>>,
        path: &[u8],
    ) -> Result<(), TreeError> {
        let level = match self.levels.last() {
            None => self.enter_top(meta)?,
            Some(level) => {
                let created = enter_directory(level.directory.as_fd(), name, initial_mode(meta));
                OpenDirectory {
                    directory: Arc::new(created.map_err(|errno| self.write_error(path)(errno))?),
                    meta: meta.map(MetaBuf::from_wire),
                }
            }
        };
        self.levels.push(level);
        Ok(())
    }

    fn leave(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let Some(level) = self.levels.pop() else {
            return Ok(());
        };
        let Some(meta) = level.meta else {
            return Ok(());
        };
        let directory = level.directory.as_fd();
        fstat(directory)
            .and_then(|stat| {
                let mode = Mode::from_raw_mode(mode_of(&stat).into());
                self.set_meta(directory, &meta.as_wire(), mode)
            })
            .map_err(|errno| self.write_error(path)(errno))
    }

    fn begin_file(
        &mut self,
        name: &[u8],
        meta: &Metadata<'_>,
        _size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        let location = self.locate(name, FileType::RegularFile)?;
        // Most files can be created with their final permissions, which saves a
        // chmod(2). But attributes can be set only while the file is writable.
        let mode = if meta.xattrs.is_empty() {
            self.permissions(meta) & Mode::from_raw_mode(0o777)
        } else {
            Mode::RUSR | Mode::WUSR
        };
        let temp = AtomicFile::create(location.directory.as_fd(), mode, &mut self.temp_kind)
            .map_err(|errno| self.write_error(path)(errno))?;
        self.file = Some(OpenFile {
            temp,
            location,
            meta: MetaBuf::from_wire(meta),
            length: 0,
            ends_with_hole: false,
        });
        Ok(())
    }

    fn data(&mut self, mut bytes: &[u8], path: &[u8]) -> Result<(), TreeError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        while !bytes.is_empty() {
            match pwrite(file.temp.as_fd(), bytes, file.length) {
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    file.length += count as u64;
                    file.ends_with_hole = false;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.write_error(path)(errno)),
            }
        }
        Ok(())
    }

    fn hole(&mut self, bytes: u64, path: &[u8]) -> Result<(), TreeError> {
        if let Some(file) = &mut self.file {
            file.length = match file.length.checked_add(bytes) {
                Some(length) => length,
                None => return Err(self.write_error(path)(Errno::FBIG)),
            };
            file.ends_with_hole |= bytes > 0;
        }
        Ok(())
    }

    fn end_file(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        self.finish_file(file)
            .map_err(|errno| self.write_error(path)(errno))
    }

    fn symlink(
        &mut self,
        name: &[u8],
        meta: &Metadata<'_>,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        if self.levels.is_empty() && self.top_symlink == TopSymlink::Reject {
            return Err(TreeError::IsSymlink {
                path: display_path_below(&self.destination, b""),
                target: display_path(target),
            });
        }
        let location = self.locate(name, FileType::Symlink)?;
        self.create_symlink(&location, meta, target)
            .map_err(|errno| self.write_error(path)(errno))
    }

    fn hard_link(&mut self, name: &[u8], to: &[u8], path: &[u8]) -> Result<(), TreeError> {
        let Some(file) = self.find_created(to) else {
            return Err(TreeError::Malformed {
                reason: "a hard link to something that is not a file of this tree",
                path: display_path(path),
            });
        };
        let location = self.locate(name, FileType::RegularFile)?;
        file.link(location.directory.as_fd(), &location.name)
            .map_err(|errno| self.write_error(path)(errno))
    }

    fn finish(self: Box<Self>) -> Result<Losses, TreeError> {
        Ok(self.losses)
    }
}

/// Opens a directory, or creates it. Replaces a file or link with its name.
fn enter_directory(parent: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_ATTEMPTS {
        match mkdirat(parent, name, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        match openat(parent, name, flags, Mode::empty()) {
            Err(errno) if errno == Errno::NOTDIR || is_symlink_error(errno) => {}
            // It has just been removed.
            Err(Errno::NOENT) => continue,
            other => return other,
        }
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::BUSY)
}

/// Returns the permissions of a directory while it is being filled.
fn initial_mode(meta: Option<&Metadata<'_>>) -> Mode {
    match meta {
        Some(_) => Mode::RWXU,
        None => Mode::from_raw_mode(0o777),
    }
}

/// Returns the owner and group to set. The largest ID is not valid: for
/// chown(2) it means "unchanged".
fn owner(meta: &Metadata<'_>) -> (Option<Uid>, Option<Gid>) {
    (
        (meta.uid != u32::MAX).then(|| Uid::from_raw(meta.uid)),
        (meta.gid != u32::MAX).then(|| Gid::from_raw(meta.gid)),
    )
}
