use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
    rc::Rc,
    vec,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, fstat, openat, readlinkat, statat},
    io::Errno,
};
use vmcell_wire::{
    files::FileKind,
    pattern::{Filter, Selection},
};

use super::{
    ExistingEntry, ExistingLookup, RecordSender,
    content::OpenFile,
    existing::{Comparison, HostFacts},
};
use crate::transfer::{
    TreeError,
    budget::check_depth,
    error::display_path_below,
    meta::{MetaBuf, kind_of, kind_text, mode_of, modified_of, size_of},
    platform::{FileId, file_id, is_symlink_error},
    xattrs::XattrReader,
};

/// Sends the tree at a path of the host.
pub(super) fn send_path(
    base: &Path,
    filter: &Filter,
    existing: Option<ExistingLookup<'_>>,
    sender: &mut RecordSender<'_>,
) -> Result<(), TreeError> {
    let missing = || TreeError::Missing {
        path: display_path_below(base, b""),
    };
    let name = CString::new(base.as_os_str().as_bytes()).map_err(|_| missing())?;
    let mut walk = Walk {
        base,
        filter,
        existing,
        sender,
        levels: Vec::new(),
        path: Vec::new(),
        hard_links: HashMap::new(),
        buffer: Vec::new(),
        xattrs: XattrReader::new(),
    };
    let top = DirEntry {
        directory: CWD,
        name: &name,
    };
    let stat = match top.stat() {
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(missing()),
        other => other.map_err(|errno| walk.read_error(errno))?,
    };
    walk.visit(&top, b"", &stat, filter.select_root())?;
    walk.send_contents()?;

    let is_nothing = walk.sender.budget.entries == 0 && walk.sender.unchanged == 0;
    match walk.sender.skipped.first.first() {
        Some(top) if is_nothing => Err(TreeError::NotTransferable {
            path: display_path_below(base, b""),
            reason: top.reason.clone(),
        }),
        _ => Ok(()),
    }
}

/// A traversal of a directory, sorted by name. Every name is looked up in its
/// open directory and no link is followed, so a process that moves entries
/// meanwhile cannot lead it out of the tree.
struct Walk<'w, 'k, 's> {
    base: &'w Path,
    filter: &'w Filter,
    existing: Option<ExistingLookup<'k>>,
    sender: &'w mut RecordSender<'s>,
    levels: Vec<OpenDirectory>,
    /// The path of the current entry, relative to the top.
    path: Vec<u8>,
    /// The first path of each sent file that has several hard links.
    hard_links: HashMap<FileId, Box<[u8]>>,
    buffer: Vec<u8>,
    xattrs: XattrReader,
}

/// A directory that contains the current entry.
struct OpenDirectory {
    directory: Rc<OwnedFd>,
    names: vec::IntoIter<CString>,
    /// The length of its path, which is a prefix of the current path, and the
    /// length of its name at the end of that.
    path_length: usize,
    name_length: usize,
    selection: Selection,
    meta: MetaBuf,
    /// Whether it was sent. An unchanged directory is sent only if something in
    /// it is.
    is_entered: bool,
}

/// A name in an open directory.
struct DirEntry<'a> {
    directory: BorrowedFd<'a>,
    name: &'a CStr,
}

impl DirEntry<'_> {
    fn stat(&self) -> Result<Stat, Errno> {
        statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Without O_NONBLOCK, opening a pipe that has just replaced the file
        // would block.
        let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(self.directory, self.name, flags, Mode::empty())
    }
}

impl<'k> Walk<'_, 'k, '_> {
    /// Sends the contents of the open directories.
    fn send_contents(&mut self) -> Result<(), TreeError> {
        while let Some(level) = self.levels.last_mut() {
            self.path.truncate(level.path_length);
            let Some(name) = level.names.next() else {
                let is_entered = level.is_entered;
                self.levels.pop();
                if is_entered {
                    self.sender.leave()?;
                }
                continue;
            };
            let (directory, parent) = (Rc::clone(&level.directory), level.selection);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name.to_bytes());
            let entry = DirEntry {
                directory: directory.as_fd(),
                name: &name,
            };
            let stat = match entry.stat() {
                Ok(stat) => stat,
                Err(errno) => {
                    self.skip_entry(errno)?;
                    continue;
                }
            };
            let is_directory = kind_of(&stat) == Some(FileKind::Directory);
            let selection = self.filter.select_within(parent, &self.path, is_directory);
            if selection != Selection::Skip {
                self.visit(&entry, name.to_bytes(), &stat, selection)?;
            }
        }
        Ok(())
    }

    /// Sends an entry without its contents.
    fn visit(
        &mut self,
        entry: &DirEntry<'_>,
        name: &[u8],
        stat: &Stat,
        selection: Selection,
    ) -> Result<(), TreeError> {
        match kind_of(stat) {
            Some(FileKind::Directory) => self.directory(entry, name, selection),
            Some(FileKind::File) => self.file(entry, name, stat),
            Some(FileKind::Symlink) => self.symlink(entry, name, stat),
            kind => {
                let reason = format!("it is {}", kind_text(kind));
                self.sender.skipped.add(&self.path, reason);
                Ok(())
            }
        }
    }

    fn directory(
        &mut self,
        entry: &DirEntry<'_>,
        name: &[u8],
        selection: Selection,
    ) -> Result<(), TreeError> {
        check_depth(self.levels.len(), &self.path)?;
        let directory = match entry.open(OFlags::DIRECTORY) {
            Ok(directory) => directory,
            Err(errno) => return self.skip_entry(errno),
        };
        let stat = fstat(&directory).map_err(|errno| self.read_error(errno))?;
        let names = match self.names_in(directory.as_fd()) {
            Ok(names) => names,
            Err(NamesError::Unreadable(errno)) => return self.skip_entry(errno),
            Err(NamesError::TooMany(error)) => return Err(error),
        };
        let is_unchanged = self.compare(FileKind::Directory, &stat) == Some(Comparison::Same);
        self.sender.unchanged += u64::from(is_unchanged);
        let mut meta = MetaBuf::from_stat(&stat);
        self.sender.lost_xattrs += self.xattrs.read(directory.as_fd(), &mut meta.xattrs);
        let is_top = self.levels.is_empty();
        self.levels.push(OpenDirectory {
            directory: Rc::new(directory),
            names,
            path_length: self.path.len(),
            name_length: name.len(),
            selection,
            meta,
            is_entered: false,
        });
        if is_top || (selection == Selection::Include && !is_unchanged) {
            return self.enter();
        }
        Ok(())
    }

    /// Sends the open directories that were not sent yet.
    fn enter(&mut self) -> Result<(), TreeError> {
        for level in self.levels.iter_mut().filter(|level| !level.is_entered) {
            let path = self.path.get(..level.path_length).unwrap_or_default();
            let (_, name) = path
                .split_at_checked(path.len() - level.name_length)
                .unwrap_or_default();
            self.sender.begin(path)?;
            self.sender.enter(name, Some(&level.meta), path)?;
            level.is_entered = true;
        }
        Ok(())
    }

    fn file(&mut self, entry: &DirEntry<'_>, name: &[u8], stat: &Stat) -> Result<(), TreeError> {
        if let Some(first) = self.hard_links.get(&file_id(stat)) {
            let first = first.clone();
            self.begin()?;
            return self.sender.hard_link(name, &first, &self.path);
        }
        let comparison = self.compare(FileKind::File, stat);
        if comparison == Some(Comparison::Same) {
            self.sender.unchanged += 1;
            return Ok(());
        }
        let file = match entry.open(OFlags::NOCTTY) {
            Ok(file) => file,
            Err(errno) => return self.skip_entry(errno),
        };
        let stat = fstat(&file).map_err(|errno| self.read_error(errno))?;
        if kind_of(&stat) != Some(FileKind::File) {
            return self.skip_entry(Errno::NOENT);
        }
        let mut meta = MetaBuf::from_stat(&stat);
        let file = OpenFile::new(file, &stat);
        if let Some(Comparison::SameIfDigest(digest)) = comparison
            && file.has_digest(&digest, &self.path, &mut self.buffer)?
        {
            self.sender.unchanged += 1;
            return Ok(());
        }
        self.sender.lost_xattrs += self.xattrs.read(file.as_fd(), &mut meta.xattrs);
        self.begin()?;
        file.send(name, &meta, &self.path, &mut self.buffer, self.sender)?;
        if stat.st_nlink > 1 {
            let first = self.path.clone().into_boxed_slice();
            self.hard_links.insert(file_id(&stat), first);
        }
        Ok(())
    }

    fn symlink(&mut self, entry: &DirEntry<'_>, name: &[u8], stat: &Stat) -> Result<(), TreeError> {
        let target = match readlinkat(entry.directory, entry.name, Vec::new()) {
            Ok(target) => target,
            Err(errno) => return self.skip_entry(errno),
        };
        let target = target.to_bytes();
        if let Some(existing) = self.existing_here()
            && existing.compare(&host_facts(FileKind::Symlink, stat)) == Comparison::SameIfTarget
            && existing.target == target
        {
            self.sender.unchanged += 1;
            return Ok(());
        }
        self.begin()?;
        let meta = MetaBuf::from_stat(stat);
        self.sender.symlink(name, &meta, target, &self.path)
    }

    fn begin(&mut self) -> Result<(), TreeError> {
        self.enter()?;
        self.sender.begin(&self.path)
    }

    fn existing_here(&self) -> Option<ExistingEntry<'k>> {
        self.existing.and_then(|existing| existing(&self.path))
    }

    fn compare(&self, kind: FileKind, stat: &Stat) -> Option<Comparison> {
        Some(self.existing_here()?.compare(&host_facts(kind, stat)))
    }

    /// Returns the sorted names in a directory.
    fn names_in(&self, directory: BorrowedFd<'_>) -> Result<vec::IntoIter<CString>, NamesError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push(entry.file_name().to_owned());
                self.sender
                    .budget
                    .check_entries(names.len(), &self.path)
                    .map_err(NamesError::TooMany)?;
            }
        }
        names.sort_unstable();
        Ok(names.into_iter())
    }

    /// Skips an entry that may not be read or does not exist any more.
    fn skip_entry(&mut self, errno: Errno) -> Result<(), TreeError> {
        let reason = match errno {
            Errno::ACCESS | Errno::PERM => "it may not be read",
            Errno::NOENT | Errno::NOTDIR | Errno::NXIO => "it was changed meanwhile",
            _ if is_symlink_error(errno) => "it was changed meanwhile",
            _ => return Err(self.read_error(errno)),
        };
        self.sender.skipped.add(&self.path, reason.to_owned());
        Ok(())
    }

    fn read_error(&self, errno: Errno) -> TreeError {
        TreeError::read(display_path_below(self.base, &self.path), errno)
    }
}

enum NamesError {
    Unreadable(Errno),
    TooMany(TreeError),
}

impl From<Errno> for NamesError {
    fn from(errno: Errno) -> Self {
        Self::Unreadable(errno)
    }
}

fn host_facts(kind: FileKind, stat: &Stat) -> HostFacts {
    HostFacts {
        kind,
        mode: mode_of(stat),
        size: size_of(stat),
        modified: modified_of(stat),
        owner: (stat.st_uid, stat.st_gid),
    }
}
