use std::{
    collections::HashSet,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
};

use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fchmod, fchown, fstat,
        ftruncate, futimens, mkdirat, openat, openat2, symlinkat, unlinkat, utimensat,
    },
    io::{Errno, pwrite},
};
use vmcell_wire::files::{FileKind, Meta};

use super::{
    Ownership, ReceiveOptions, SpecialBits, Target, TopSymlink,
    target::Losses,
    unfinished::{Scratch, Unfinished, link, make_or_replace},
};
use crate::transfer::{
    TreeError,
    error::{shown, shown_below},
    host_entry::HostEntry,
    meta::{MetaBuf, kind_of, mode_of, timestamps},
    xattrs,
};

/// How often a directory is tried for that somebody else keeps replacing.
const TRIES: usize = 100;

/// A tree that becomes files of the host.
pub(super) struct Folder {
    destination: PathBuf,
    ownership: Ownership,
    special_bits: SpecialBits,
    top_symlink: TopSymlink,
    scratch: Scratch,
    /// The directories that are open, the top first.
    levels: Vec<Level>,
    file: Option<OpenFile>,
    /// The files that this transfer has made, by device and inode: hard links
    /// go to these and no others.
    made: HashSet<(u64, u64)>,
    losses: Losses,
}

struct Level {
    directory: Arc<OwnedFd>,
    /// Set when it is left.
    meta: Option<MetaBuf>,
}

struct OpenFile {
    unfinished: Unfinished,
    at: At,
    meta: MetaBuf,
    length: u64,
    /// Whether it ends with a hole.
    is_short: bool,
}

/// Where an entry goes.
struct At {
    directory: Arc<OwnedFd>,
    name: Vec<u8>,
}

impl Folder {
    pub(super) fn new(destination: PathBuf, options: &ReceiveOptions<'_>) -> Self {
        Self {
            destination,
            ownership: options.ownership,
            special_bits: options.special_bits,
            top_symlink: options.top_symlink,
            scratch: Scratch::new(),
            levels: Vec::new(),
            file: None,
            made: HashSet::new(),
            losses: Losses::default(),
        }
    }

    /// The top of a tree that is a directory. One that is there stays as it is.
    fn enter_top(&self, meta: Option<&Meta<'_>>) -> Result<Level, TreeError> {
        let entry = HostEntry::open(&self.destination)?;
        let (directory, is_made) = entry.enter(first_mode(meta))?;
        Ok(Level {
            directory: Arc::new(directory),
            meta: meta.filter(|_| is_made).map(MetaBuf::from_wire),
        })
    }

    /// Where a file or a symbolic link goes.
    fn at(&self, name: &[u8], kind: FileType) -> Result<At, TreeError> {
        if let Some(level) = self.levels.last() {
            return Ok(At {
                directory: Arc::clone(&level.directory),
                name: name.to_vec(),
            });
        }
        let entry = HostEntry::open(&self.destination)?;
        entry.check_replaceable(kind)?;
        let (directory, name) = entry.into_parts();
        Ok(At {
            directory: Arc::new(directory),
            name,
        })
    }

    fn permissions(&self, meta: &Meta<'_>) -> Mode {
        let kept = match self.special_bits {
            SpecialBits::Drop => 0o777,
            SpecialBits::Keep => 0o7777,
        };
        Mode::from_raw_mode(u32::from(meta.mode) & kept)
    }

    /// Sets everything that there is to an open file or directory, which has
    /// `mode` so far.
    fn set_meta(&mut self, file: BorrowedFd<'_>, meta: &Meta<'_>, mode: Mode) -> Result<(), Errno> {
        // Attributes while it can be written, and permissions after the owner,
        // because chown(2) takes bits away.
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
        let descriptor = file.unfinished.as_fd();
        if file.is_short {
            ftruncate(descriptor, file.length)?;
        }
        let stat = fstat(descriptor)?;
        let mode = Mode::from_raw_mode(mode_of(&stat).into());
        self.set_meta(descriptor, &file.meta.as_wire(), mode)?;
        file.unfinished
            .publish(file.at.directory.as_fd(), &file.at.name)?;
        self.made.insert((stat.st_dev, stat.st_ino));
        Ok(())
    }

    fn make_symlink(&self, at: &At, meta: &Meta<'_>, target: &[u8]) -> Result<(), Errno> {
        let directory = at.directory.as_fd();
        make_or_replace(directory, &at.name, |name| {
            symlinkat(target, directory, name)?;
            if self.ownership == Ownership::Recorded {
                let (uid, gid) = owner(meta);
                chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            let times = timestamps(meta.modified);
            utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Opens a file that this transfer has made.
    fn open_made(&self, path: &[u8]) -> Option<OwnedFd> {
        let top = &self.levels.first()?.directory;
        let file = openat2(
            top,
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
        .ok()?;
        let stat = fstat(&file).ok()?;
        let is_made = kind_of(&stat) == Some(FileKind::File)
            && self.made.contains(&(stat.st_dev, stat.st_ino));
        is_made.then_some(file)
    }

    fn unwritable(&self, path: &[u8]) -> impl Fn(Errno) -> TreeError {
        let path = shown_below(&self.destination, path);
        move |errno| TreeError::write(path.clone(), errno)
    }
}

impl Target for Folder {
    fn fills_holes(&self) -> bool {
        false
    }

    fn enter(
        &mut self,
        name: &[u8],
        meta: Option<&Meta<'_>>,
        path: &[u8],
    ) -> Result<(), TreeError> {
        let level = match self.levels.last() {
            None => self.enter_top(meta)?,
            Some(level) => {
                let made = make_directory(level.directory.as_fd(), name, first_mode(meta));
                Level {
                    directory: Arc::new(made.map_err(|errno| self.unwritable(path)(errno))?),
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
            .map_err(|errno| self.unwritable(path)(errno))
    }

    fn begin_file(
        &mut self,
        name: &[u8],
        meta: &Meta<'_>,
        _size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        let at = self.at(name, FileType::RegularFile)?;
        // With its permissions from the start most files need no chmod(2). But
        // attributes can be set only as long as the file may be written.
        let mode = if meta.xattrs.is_empty() {
            self.permissions(meta) & Mode::from_raw_mode(0o777)
        } else {
            Mode::RUSR | Mode::WUSR
        };
        let unfinished = Unfinished::create(at.directory.as_fd(), mode, &mut self.scratch)
            .map_err(|errno| self.unwritable(path)(errno))?;
        self.file = Some(OpenFile {
            unfinished,
            at,
            meta: MetaBuf::from_wire(meta),
            length: 0,
            is_short: false,
        });
        Ok(())
    }

    fn data(&mut self, mut bytes: &[u8], path: &[u8]) -> Result<(), TreeError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        while !bytes.is_empty() {
            match pwrite(file.unfinished.as_fd(), bytes, file.length) {
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    file.length += count as u64;
                    file.is_short = false;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.unwritable(path)(errno)),
            }
        }
        Ok(())
    }

    fn hole(&mut self, bytes: u64, path: &[u8]) -> Result<(), TreeError> {
        if let Some(file) = &mut self.file {
            file.length = match file.length.checked_add(bytes) {
                Some(length) => length,
                None => return Err(self.unwritable(path)(Errno::FBIG)),
            };
            file.is_short |= bytes > 0;
        }
        Ok(())
    }

    fn end_file(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        self.finish_file(file)
            .map_err(|errno| self.unwritable(path)(errno))
    }

    fn symlink(
        &mut self,
        name: &[u8],
        meta: &Meta<'_>,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        if self.levels.is_empty() && self.top_symlink == TopSymlink::Refuse {
            return Err(TreeError::IsSymlink {
                path: shown_below(&self.destination, b""),
                target: shown(target),
            });
        }
        let at = self.at(name, FileType::Symlink)?;
        self.make_symlink(&at, meta, target)
            .map_err(|errno| self.unwritable(path)(errno))
    }

    fn hard_link(&mut self, name: &[u8], to: &[u8], path: &[u8]) -> Result<(), TreeError> {
        let Some(file) = self.open_made(to) else {
            return Err(TreeError::Malformed {
                reason: "a hard link to what is no file of this tree",
                path: shown(path),
            });
        };
        let at = self.at(name, FileType::RegularFile)?;
        link(file.as_fd(), at.directory.as_fd(), &at.name)
            .map_err(|errno| self.unwritable(path)(errno))
    }

    fn finish(self: Box<Self>) -> Result<Losses, TreeError> {
        Ok(self.losses)
    }
}

/// Opens a directory, and makes it if it is not there. A file or link that has
/// its name is replaced.
fn make_directory(parent: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        match mkdirat(parent, name, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        match openat(parent, name, flags, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => {}
            // Somebody has just removed it.
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

/// The permissions of a directory while it is being filled.
fn first_mode(meta: Option<&Meta<'_>>) -> Mode {
    match meta {
        Some(_) => Mode::RWXU,
        None => Mode::from_raw_mode(0o777),
    }
}

/// The largest number is none: chown(2) would take it for "leave it".
fn owner(meta: &Meta<'_>) -> (Option<Uid>, Option<Gid>) {
    (
        (meta.uid != u32::MAX).then(|| Uid::from_raw(meta.uid)),
        (meta.gid != u32::MAX).then(|| Gid::from_raw(meta.gid)),
    )
}
