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
    Known, Lookup, Outgoing,
    content::OpenFile,
    known::{Difference, Found},
};
use crate::transfer::{
    TreeError,
    budget::check_depth,
    error::shown_below,
    meta::{MetaBuf, kind_of, kind_text, mode_of, modified_of, size_of},
    xattrs::XattrReader,
};

/// Sends what is at a path of the host.
pub(super) fn send_path(
    base: &Path,
    filter: &Filter,
    known: Option<Lookup<'_>>,
    outgoing: &mut Outgoing<'_>,
) -> Result<(), TreeError> {
    let missing = || TreeError::Missing {
        path: shown_below(base, b""),
    };
    let name = CString::new(base.as_os_str().as_bytes()).map_err(|_| missing())?;
    let mut walk = Walk {
        base,
        filter,
        known,
        outgoing,
        levels: Vec::new(),
        path: Vec::new(),
        links: HashMap::new(),
        buffer: Vec::new(),
        xattrs: XattrReader::new(),
    };
    let top = At {
        directory: CWD,
        name: &name,
    };
    let stat = match top.stat() {
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(missing()),
        other => other.map_err(|errno| walk.unreadable(errno))?,
    };
    walk.visit(&top, b"", &stat, filter.select_root())?;
    walk.below()?;

    let is_nothing = walk.outgoing.budget.entries == 0 && walk.outgoing.unchanged == 0;
    match walk.outgoing.left_outs.first.first() {
        Some(top) if is_nothing => Err(TreeError::LeftOut {
            path: shown_below(base, b""),
            reason: top.reason.clone(),
        }),
        _ => Ok(()),
    }
}

/// A walk through a directory, in order of names. Every name is looked up in
/// its open directory and no link is followed, so whoever moves things around
/// meanwhile cannot lead it out of the tree.
struct Walk<'w, 'k, 's> {
    base: &'w Path,
    filter: &'w Filter,
    known: Option<Lookup<'k>>,
    outgoing: &'w mut Outgoing<'s>,
    levels: Vec<Level>,
    /// Of the entry that is looked at, from the top.
    path: Vec<u8>,
    /// The first names of files that have several and were sent.
    links: HashMap<(u64, u64), Box<[u8]>>,
    buffer: Vec<u8>,
    xattrs: XattrReader,
}

/// A directory on the way to where the walk is.
struct Level {
    directory: Rc<OwnedFd>,
    names: vec::IntoIter<CString>,
    /// Its path is so much of the walk's, and its name the end of that.
    path_length: usize,
    name_length: usize,
    selection: Selection,
    meta: MetaBuf,
    /// Whether it was sent. What differs in nothing is sent only if something
    /// in it is.
    is_entered: bool,
}

/// Where an entry is.
struct At<'a> {
    directory: BorrowedFd<'a>,
    name: &'a CStr,
}

impl At<'_> {
    fn stat(&self) -> Result<Stat, Errno> {
        statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Without O_NONBLOCK a pipe that has just taken a file's place would
        // keep us waiting.
        let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(self.directory, self.name, flags, Mode::empty())
    }
}

impl<'k> Walk<'_, 'k, '_> {
    /// Everything in the directories that are open.
    fn below(&mut self) -> Result<(), TreeError> {
        while let Some(level) = self.levels.last_mut() {
            self.path.truncate(level.path_length);
            let Some(name) = level.names.next() else {
                let is_entered = level.is_entered;
                self.levels.pop();
                if is_entered {
                    self.outgoing.leave()?;
                }
                continue;
            };
            let (directory, parent) = (Rc::clone(&level.directory), level.selection);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name.to_bytes());
            let at = At {
                directory: directory.as_fd(),
                name: &name,
            };
            let stat = match at.stat() {
                Ok(stat) => stat,
                Err(errno) => {
                    self.leave_out(errno)?;
                    continue;
                }
            };
            let is_directory = kind_of(&stat) == Some(FileKind::Directory);
            let selection = self.filter.select_within(parent, &self.path, is_directory);
            if selection != Selection::Skip {
                self.visit(&at, name.to_bytes(), &stat, selection)?;
            }
        }
        Ok(())
    }

    /// An entry, but not what is in it.
    fn visit(
        &mut self,
        at: &At<'_>,
        name: &[u8],
        stat: &Stat,
        selection: Selection,
    ) -> Result<(), TreeError> {
        match kind_of(stat) {
            Some(FileKind::Directory) => self.directory(at, name, selection),
            Some(FileKind::File) => self.file(at, name, stat),
            Some(FileKind::Symlink) => self.symlink(at, name, stat),
            kind => {
                let reason = format!("it is {}", kind_text(kind));
                self.outgoing.left_outs.add(&self.path, reason);
                Ok(())
            }
        }
    }

    fn directory(
        &mut self,
        at: &At<'_>,
        name: &[u8],
        selection: Selection,
    ) -> Result<(), TreeError> {
        check_depth(self.levels.len(), &self.path)?;
        let directory = match at.open(OFlags::DIRECTORY) {
            Ok(directory) => directory,
            Err(errno) => return self.leave_out(errno),
        };
        let stat = fstat(&directory).map_err(|errno| self.unreadable(errno))?;
        let names = match self.names_in(directory.as_fd()) {
            Ok(names) => names,
            Err(NamesError::Unreadable(errno)) => return self.leave_out(errno),
            Err(NamesError::TooMany(error)) => return Err(error),
        };
        let is_known = self.difference(FileKind::Directory, &stat) == Some(Difference::None);
        self.outgoing.unchanged += u64::from(is_known);
        let mut meta = MetaBuf::from_stat(&stat);
        self.outgoing.lost_xattrs += self.xattrs.read(directory.as_fd(), &mut meta.xattrs);
        let is_top = self.levels.is_empty();
        self.levels.push(Level {
            directory: Rc::new(directory),
            names,
            path_length: self.path.len(),
            name_length: name.len(),
            selection,
            meta,
            is_entered: false,
        });
        if is_top || (selection == Selection::Take && !is_known) {
            return self.enter();
        }
        Ok(())
    }

    /// Sends the directories that something is about to be sent in.
    fn enter(&mut self) -> Result<(), TreeError> {
        for level in self.levels.iter_mut().filter(|level| !level.is_entered) {
            let path = self.path.get(..level.path_length).unwrap_or_default();
            let (_, name) = path
                .split_at_checked(path.len() - level.name_length)
                .unwrap_or_default();
            self.outgoing.begin(path)?;
            self.outgoing.enter(name, Some(&level.meta), path)?;
            level.is_entered = true;
        }
        Ok(())
    }

    fn file(&mut self, at: &At<'_>, name: &[u8], stat: &Stat) -> Result<(), TreeError> {
        if let Some(first) = self.links.get(&(stat.st_dev, stat.st_ino)) {
            let first = first.clone();
            self.begin()?;
            return self.outgoing.hard_link(name, &first, &self.path);
        }
        let difference = self.difference(FileKind::File, stat);
        if difference == Some(Difference::None) {
            self.outgoing.unchanged += 1;
            return Ok(());
        }
        let file = match at.open(OFlags::NOCTTY) {
            Ok(file) => file,
            Err(errno) => return self.leave_out(errno),
        };
        let stat = fstat(&file).map_err(|errno| self.unreadable(errno))?;
        if kind_of(&stat) != Some(FileKind::File) {
            return self.leave_out(Errno::NOENT);
        }
        let mut meta = MetaBuf::from_stat(&stat);
        let file = OpenFile::new(file, &stat);
        if let Some(Difference::UnlessDigest(digest)) = difference
            && file.has_digest(&digest, &self.path, &mut self.buffer)?
        {
            self.outgoing.unchanged += 1;
            return Ok(());
        }
        self.outgoing.lost_xattrs += self.xattrs.read(file.as_fd(), &mut meta.xattrs);
        self.begin()?;
        file.send(name, &meta, &self.path, &mut self.buffer, self.outgoing)?;
        if stat.st_nlink > 1 {
            let first = self.path.clone().into_boxed_slice();
            self.links.insert((stat.st_dev, stat.st_ino), first);
        }
        Ok(())
    }

    fn symlink(&mut self, at: &At<'_>, name: &[u8], stat: &Stat) -> Result<(), TreeError> {
        let target = match readlinkat(at.directory, at.name, Vec::new()) {
            Ok(target) => target,
            Err(errno) => return self.leave_out(errno),
        };
        let target = target.to_bytes();
        if let Some(known) = self.known_here()
            && known.differs_from(&found(FileKind::Symlink, stat)) == Difference::UnlessTarget
            && known.target == target
        {
            self.outgoing.unchanged += 1;
            return Ok(());
        }
        self.begin()?;
        let meta = MetaBuf::from_stat(stat);
        self.outgoing.symlink(name, &meta, target, &self.path)
    }

    fn begin(&mut self) -> Result<(), TreeError> {
        self.enter()?;
        self.outgoing.begin(&self.path)
    }

    fn known_here(&self) -> Option<Known<'k>> {
        self.known.and_then(|known| known(&self.path))
    }

    fn difference(&self, kind: FileKind, stat: &Stat) -> Option<Difference> {
        Some(self.known_here()?.differs_from(&found(kind, stat)))
    }

    /// The names in a directory, in order.
    fn names_in(&self, directory: BorrowedFd<'_>) -> Result<vec::IntoIter<CString>, NamesError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push(entry.file_name().to_owned());
                self.outgoing
                    .budget
                    .check_entries(names.len(), &self.path)
                    .map_err(NamesError::TooMany)?;
            }
        }
        names.sort_unstable();
        Ok(names.into_iter())
    }

    /// Goes on without an entry that may not be read or is gone by now.
    fn leave_out(&mut self, errno: Errno) -> Result<(), TreeError> {
        let reason = match errno {
            Errno::ACCESS | Errno::PERM => "it may not be read",
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO => "it was changed meanwhile",
            _ => return Err(self.unreadable(errno)),
        };
        self.outgoing.left_outs.add(&self.path, reason.to_owned());
        Ok(())
    }

    fn unreadable(&self, errno: Errno) -> TreeError {
        TreeError::read(shown_below(self.base, &self.path), errno)
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

fn found(kind: FileKind, stat: &Stat) -> Found {
    Found {
        kind,
        mode: mode_of(stat),
        size: size_of(stat),
        modified: modified_of(stat),
        owner: (stat.st_uid, stat.st_gid),
    }
}
