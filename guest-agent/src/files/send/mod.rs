mod content;
mod pending_directories;

use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat_raw},
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::{Content, Metadata, Send, TreeRecord, Xattrs},
    limits::{MAX_INLINE, MAX_PATH},
    pattern::{Filter, Selection},
};

use self::pending_directories::PendingDirectories;
use super::{
    entry::{has_type, kind_of, modified, status_of},
    root::{Root, resolve_error},
    target::NO_SIDE_EFFECTS,
    walk::{HardLinks, Order, READ_DIRECTORY, Step, Traversal, bad_pattern},
    xattrs::XattrReader,
};
use crate::worker::{FileError, JobIo, JobResult};

/// Sends a tree.
pub(super) fn perform(io: &mut JobIo, root: &Root, request: &Send<'_>) -> JobResult<()> {
    let filter = Filter::new(request.include, request.exclude).map_err(bad_pattern)?;
    let mut sender = Sender {
        io,
        directories: PendingDirectories::default(),
        hard_links: HardLinks::default(),
        xattrs: XattrReader::default(),
        buffer: alloc::vec![0; MAX_INLINE],
    };
    if request.path.iter().all(|byte| *byte == b'/') {
        let top = root.open_path(b"", READ_DIRECTORY, Mode::empty())?;
        return sender.send_tree(top, &filter);
    }
    let location = root.locate(request.path)?;
    let status = status_of(&location.directory, location.name).map_err(resolve_error)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => {
            let top = openat(
                &location.directory,
                location.name,
                READ_DIRECTORY,
                Mode::empty(),
            )
            .map_err(resolve_error)?;
            sender.send_tree(top, &filter)
        }
        kind @ (FileType::RegularFile | FileType::Symlink) => {
            let item = SendItem {
                directory: location.directory.as_fd(),
                name: location.name,
                record_name: &[],
                path: &[],
            };
            match sender.send_entry(&item, kind)? {
                SendOutcome::Sent => Ok(()),
                SendOutcome::Vanished => Err(resolve_error(Errno::NOENT)),
                SendOutcome::Unreadable(failure) => Err(failure.into()),
            }
        }
        _ => Err(FileError::new(
            FailureKind::Unsupported,
            "it is not a file, directory or link, so it cannot be copied",
        )
        .into()),
    }
}

struct Sender<'a> {
    io: &'a mut JobIo,
    directories: PendingDirectories,
    hard_links: HardLinks,
    xattrs: XattrReader,
    /// For small files and targets of links.
    buffer: Vec<u8>,
}

/// An entry that is to be sent.
struct SendItem<'a> {
    directory: BorrowedFd<'a>,
    name: &'a [u8],
    /// The name in its record.
    record_name: &'a [u8],
    /// The path from the top of the tree.
    path: &'a [u8],
}

/// The result of sending an entry.
enum SendOutcome {
    Sent,
    /// It was removed since its name was read.
    Vanished,
    /// It cannot be read.
    Unreadable(FileError),
}

impl SendOutcome {
    fn failed(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Vanished,
            errno => Self::Unreadable(FileError::errno(errno, "reading it")),
        }
    }
}

impl Sender<'_> {
    fn send_tree(&mut self, top: OwnedFd, filter: &Filter) -> JobResult<()> {
        let selection = filter.select_root();
        let status = fstat(&top).map_err(resolve_error)?;
        let meta = meta(&status, self.xattrs.read(top.as_fd()));
        // The top is sent even if the filter excludes all of it.
        self.directories.enter(b"", meta)?;
        self.directories.send(self.io)?;
        let mut traversal = Traversal::new(top, Order::Any, selection);
        while let Some(step) = traversal.next() {
            self.io.check_cancelled()?;
            match step {
                Ok(Step::Entry(hint)) => self.visit(&mut traversal, hint, filter)?,
                Ok(Step::Left) => self.directories.leave(self.io)?,
                Err(failure) => return Err(failure.with_path(traversal.path()).into()),
            }
        }
        Ok(())
    }

    fn visit(
        &mut self,
        traversal: &mut Traversal,
        hint: FileType,
        filter: &Filter,
    ) -> JobResult<()> {
        let kind = match hint {
            FileType::Unknown => match traversal.status() {
                Ok(status) => FileType::from_raw_mode(status.st_mode),
                Err(errno) => {
                    return self.report_skipped(traversal, None, SendOutcome::failed(errno));
                }
            },
            kind => kind,
        };
        let is_directory = kind == FileType::Directory;
        let selection = filter.select_within(traversal.selection(), traversal.path(), is_directory);
        let sent = match (selection, kind) {
            (Selection::Skip, _) => return Ok(()),
            (_, FileType::Directory) => self.enter(traversal, selection)?,
            (_, FileType::RegularFile | FileType::Symlink) => {
                self.directories.send(self.io)?;
                let item = SendItem {
                    directory: traversal.directory(),
                    name: traversal.name(),
                    record_name: traversal.name(),
                    path: traversal.path(),
                };
                self.send_entry(&item, kind)?
            }
            _ => {
                self.directories.send(self.io)?;
                return self.io.send_record(&TreeRecord::Skipped {
                    name: traversal.name(),
                    kind: Some(kind_of(kind)),
                    failure: None,
                });
            }
        };
        self.report_skipped(traversal, Some(kind), sent)
    }

    /// Reports an entry that could not be sent.
    fn report_skipped(
        &mut self,
        traversal: &Traversal,
        kind: Option<FileType>,
        sent: SendOutcome,
    ) -> JobResult<()> {
        let SendOutcome::Unreadable(failure) = sent else {
            return Ok(());
        };
        self.directories.send(self.io)?;
        self.io.send_record(&TreeRecord::Skipped {
            name: traversal.name(),
            kind: kind.map(kind_of),
            failure: Some(failure.as_failure()),
        })
    }

    fn enter(&mut self, traversal: &mut Traversal, selection: Selection) -> JobResult<SendOutcome> {
        let opened = traversal
            .open(READ_DIRECTORY)
            .and_then(|directory| Ok((fstat(&directory)?, directory)));
        let (status, directory) = match opened {
            Ok(opened) => opened,
            Err(errno) => return Ok(SendOutcome::failed(errno)),
        };
        let meta = meta(&status, self.xattrs.read(directory.as_fd()));
        if let Err(failure) = traversal.enter(directory, selection) {
            return Ok(SendOutcome::Unreadable(failure));
        }
        self.directories.enter(traversal.name(), meta)?;
        if selection == Selection::Include {
            self.directories.send(self.io)?;
        }
        Ok(SendOutcome::Sent)
    }

    fn send_entry(&mut self, item: &SendItem<'_>, kind: FileType) -> JobResult<SendOutcome> {
        match kind {
            FileType::Symlink => self.send_link(item),
            _ => self.send_file(item),
        }
    }

    fn send_link(&mut self, item: &SendItem<'_>) -> JobResult<SendOutcome> {
        let buffer = self.buffer.get_mut(..MAX_PATH).unwrap_or_default();
        let found = status_of(item.directory, item.name).and_then(|status| {
            let length = readlinkat_raw(item.directory, item.name, buffer)?;
            Ok((status, length))
        });
        let (status, length) = match found {
            Ok(found) => found,
            Err(errno) => return Ok(SendOutcome::failed(errno)),
        };
        self.io.send_record(&TreeRecord::Symlink {
            name: item.record_name,
            meta: meta(&status, Xattrs::NONE),
            target: self.buffer.get(..length).unwrap_or_default(),
        })?;
        Ok(SendOutcome::Sent)
    }

    fn send_file(&mut self, item: &SendItem<'_>) -> JobResult<SendOutcome> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | NO_SIDE_EFFECTS;
        let opened = openat(item.directory, item.name, flags, Mode::empty())
            .and_then(|file| Ok((fstat(&file)?, file)));
        let (status, file) = match opened {
            Ok((status, file)) if has_type(&status, FileType::RegularFile) => (status, file),
            Ok(_) => return Ok(SendOutcome::failed(Errno::INVAL)),
            Err(errno) => return Ok(SendOutcome::failed(errno)),
        };
        if let Some(to) = self.hard_links.find(&status) {
            let name = item.record_name;
            self.io.send_record(&TreeRecord::HardLink { name, to })?;
            return Ok(SendOutcome::Sent);
        }
        let content = match content::read_small(file.as_fd(), &status, &mut self.buffer) {
            Ok(Some(bytes)) => Content::Inline(bytes),
            Ok(None) => Content::Chunked {
                size: content::length(&status),
            },
            Err(errno) => return Ok(SendOutcome::failed(errno)),
        };
        self.io.send_record(&TreeRecord::File {
            name: item.record_name,
            meta: meta(&status, self.xattrs.read(file.as_fd())),
            content,
        })?;
        if matches!(content, Content::Chunked { .. }) {
            content::send_parts(self.io, file.as_fd(), &status, item.path)?;
        }
        // If there are too many to remember, each name is sent as a separate file.
        let _ = self.hard_links.remember(&status, item.path);
        Ok(SendOutcome::Sent)
    }
}

fn meta<'a>(status: &Stat, xattrs: Xattrs<'a>) -> Metadata<'a> {
    Metadata {
        // The lowest twelve bits fit.
        mode: u16::try_from(status.st_mode & 0o7777).unwrap_or(0),
        uid: status.st_uid,
        gid: status.st_gid,
        modified: modified(status),
        xattrs,
    }
}
