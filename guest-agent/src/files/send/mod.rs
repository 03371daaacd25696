mod content;
mod directories;

use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat_raw},
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::{Content, Meta, Send, TreeRecord, Xattrs},
    limits::{MAX_INLINE, MAX_PATH},
    pattern::{Filter, Selection},
};

use self::directories::Directories;
use super::{
    entry::{kind_of, modified},
    root::{Root, unresolved},
    target::{HARMLESS, is, status_of},
    walk::{Links, Order, READ_DIRECTORY, Step, Tour, bad_pattern},
    xattrs::XattrReader,
};
use crate::worker::{FileError, JobError, JobIo};

/// Gives a tree.
pub(super) fn perform(io: &mut JobIo, root: &Root, request: &Send<'_>) -> Result<(), JobError> {
    let filter = Filter::new(request.include, request.exclude).map_err(bad_pattern)?;
    let mut sender = Sender {
        io,
        directories: Directories::default(),
        links: Links::default(),
        xattrs: XattrReader::default(),
        buffer: alloc::vec![0; MAX_INLINE],
    };
    if request.path.iter().all(|byte| *byte == b'/') {
        let top = root.open_path(b"", READ_DIRECTORY, Mode::empty())?;
        return sender.send_tree(top, &filter);
    }
    let place = root.place(request.path)?;
    let status = status_of(&place.directory, place.name).map_err(unresolved)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => {
            let top = openat(&place.directory, place.name, READ_DIRECTORY, Mode::empty())
                .map_err(unresolved)?;
            sender.send_tree(top, &filter)
        }
        kind @ (FileType::RegularFile | FileType::Symlink) => {
            let subject = Subject {
                directory: place.directory.as_fd(),
                name: place.name,
                told: &[],
                path: &[],
            };
            match sender.send_entry(&subject, kind)? {
                Sent::Yes => Ok(()),
                Sent::Gone => Err(unresolved(Errno::NOENT)),
                Sent::Not(failure) => Err(failure.into()),
            }
        }
        _ => Err(FileError::new(
            FailureKind::Unsupported,
            "it is no file, directory or link, so it cannot be copied",
        )
        .into()),
    }
}

struct Sender<'a> {
    io: &'a mut JobIo,
    directories: Directories,
    links: Links,
    xattrs: XattrReader,
    /// For small files, and for what links point to.
    buffer: Vec<u8>,
}

/// An entry that is to be sent.
struct Subject<'a> {
    directory: BorrowedFd<'a>,
    name: &'a [u8],
    /// The name in its record.
    told: &'a [u8],
    /// From the top of the tree.
    path: &'a [u8],
}

/// What became of an entry.
enum Sent {
    Yes,
    /// It was removed since its name was read.
    Gone,
    /// It cannot be read.
    Not(FileError),
}

impl Sent {
    fn failed(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Gone,
            errno => Self::Not(FileError::from_errno(errno, "reading it")),
        }
    }
}

impl Sender<'_> {
    fn send_tree(&mut self, top: OwnedFd, filter: &Filter) -> Result<(), JobError> {
        let selection = filter.select_root();
        let status = fstat(&top).map_err(unresolved)?;
        let meta = meta(&status, self.xattrs.read(top.as_fd()));
        // Whatever is left out of it, the top is what was asked for.
        self.directories.enter(b"", meta)?;
        self.directories.send(self.io)?;
        let mut tour = Tour::new(top, Order::Any, selection);
        while let Some(step) = tour.next() {
            self.io.check_cancelled()?;
            match step {
                Ok(Step::Entry(hint)) => self.visit(&mut tour, hint, filter)?,
                Ok(Step::Left) => self.directories.leave(self.io)?,
                Err(failure) => return Err(failure.with_path(tour.path()).into()),
            }
        }
        Ok(())
    }

    fn visit(&mut self, tour: &mut Tour, hint: FileType, filter: &Filter) -> Result<(), JobError> {
        let kind = match hint {
            FileType::Unknown => match tour.status() {
                Ok(status) => FileType::from_raw_mode(status.st_mode),
                Err(errno) => return self.skip(tour, None, Sent::failed(errno)),
            },
            kind => kind,
        };
        let is_directory = kind == FileType::Directory;
        let selection = filter.select_within(tour.selection(), tour.path(), is_directory);
        let sent = match (selection, kind) {
            (Selection::Skip, _) => return Ok(()),
            (_, FileType::Directory) => self.enter(tour, selection)?,
            (_, FileType::RegularFile | FileType::Symlink) => {
                self.directories.send(self.io)?;
                let subject = Subject {
                    directory: tour.directory(),
                    name: tour.name(),
                    told: tour.name(),
                    path: tour.path(),
                };
                self.send_entry(&subject, kind)?
            }
            _ => {
                self.directories.send(self.io)?;
                return self.io.send_record(&TreeRecord::Skipped {
                    name: tour.name(),
                    kind: Some(kind_of(kind)),
                    failure: None,
                });
            }
        };
        self.skip(tour, Some(kind), sent)
    }

    /// Says that an entry was left out, if it was.
    fn skip(&mut self, tour: &Tour, kind: Option<FileType>, sent: Sent) -> Result<(), JobError> {
        let Sent::Not(failure) = sent else {
            return Ok(());
        };
        self.directories.send(self.io)?;
        self.io.send_record(&TreeRecord::Skipped {
            name: tour.name(),
            kind: kind.map(kind_of),
            failure: Some(failure.as_failure()),
        })
    }

    fn enter(&mut self, tour: &mut Tour, selection: Selection) -> Result<Sent, JobError> {
        let opened = tour
            .open(READ_DIRECTORY)
            .and_then(|directory| Ok((fstat(&directory)?, directory)));
        let (status, directory) = match opened {
            Ok(opened) => opened,
            Err(errno) => return Ok(Sent::failed(errno)),
        };
        let meta = meta(&status, self.xattrs.read(directory.as_fd()));
        if let Err(failure) = tour.enter(directory, selection) {
            return Ok(Sent::Not(failure));
        }
        self.directories.enter(tour.name(), meta)?;
        if selection == Selection::Take {
            self.directories.send(self.io)?;
        }
        Ok(Sent::Yes)
    }

    fn send_entry(&mut self, subject: &Subject<'_>, kind: FileType) -> Result<Sent, JobError> {
        match kind {
            FileType::Symlink => self.send_link(subject),
            _ => self.send_file(subject),
        }
    }

    fn send_link(&mut self, subject: &Subject<'_>) -> Result<Sent, JobError> {
        let buffer = self.buffer.get_mut(..MAX_PATH).unwrap_or_default();
        let found = status_of(subject.directory, subject.name).and_then(|status| {
            let length = readlinkat_raw(subject.directory, subject.name, buffer)?;
            Ok((status, length))
        });
        let (status, length) = match found {
            Ok(found) => found,
            Err(errno) => return Ok(Sent::failed(errno)),
        };
        self.io.send_record(&TreeRecord::Symlink {
            name: subject.told,
            meta: meta(&status, Xattrs::NONE),
            target: self.buffer.get(..length).unwrap_or_default(),
        })?;
        Ok(Sent::Yes)
    }

    fn send_file(&mut self, subject: &Subject<'_>) -> Result<Sent, JobError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | HARMLESS;
        let opened = openat(subject.directory, subject.name, flags, Mode::empty())
            .and_then(|file| Ok((fstat(&file)?, file)));
        let (status, file) = match opened {
            Ok((status, file)) if is(&status, FileType::RegularFile) => (status, file),
            Ok(_) => return Ok(Sent::failed(Errno::INVAL)),
            Err(errno) => return Ok(Sent::failed(errno)),
        };
        if let Some(to) = self.links.find(&status) {
            let name = subject.told;
            self.io.send_record(&TreeRecord::HardLink { name, to })?;
            return Ok(Sent::Yes);
        }
        let content = match content::read_small(file.as_fd(), &status, &mut self.buffer) {
            Ok(Some(bytes)) => Content::Whole(bytes),
            Ok(None) => Content::Parts {
                size: content::length(&status),
            },
            Err(errno) => return Ok(Sent::failed(errno)),
        };
        self.io.send_record(&TreeRecord::File {
            name: subject.told,
            meta: meta(&status, self.xattrs.read(file.as_fd())),
            content,
        })?;
        if matches!(content, Content::Parts { .. }) {
            content::send_parts(self.io, file.as_fd(), &status, subject.path)?;
        }
        // If there are too many, a file of many names becomes many files.
        let _ = self.links.remember(&status, subject.path);
        Ok(Sent::Yes)
    }
}

fn meta<'a>(status: &Stat, xattrs: Xattrs<'a>) -> Meta<'a> {
    Meta {
        // The lowest twelve bits fit.
        mode: u16::try_from(status.st_mode & 0o7777).unwrap_or(0),
        uid: status.st_uid,
        gid: status.st_gid,
        modified: modified(status),
        xattrs,
    }
}
