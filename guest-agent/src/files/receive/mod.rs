mod attributes;
mod directory;
mod error;
mod file;
mod link;

use alloc::vec::Vec;

use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags},
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::{
        Content, FileReply, Receive, TreeRecord,
        record::{self, Piece},
    },
    limits::MAX_DEPTH,
};

use self::{
    attributes::Attributes,
    directory::{Directory, ReceivedDirectory},
    error::{directory_in_the_way, malformed_tree},
    file::PartialFile,
};
use super::{owner::NewOwner, resolve::ResolveError, root::Root};
use crate::worker::{FileError, FileResult, JobError, JobIo, JobResult};

/// Receives a tree.
pub(super) fn perform(io: &mut JobIo, root: &Root, request: &Receive<'_>) -> JobResult<()> {
    let mut receiver = Receiver::new(root, request)?;
    let mut reader = record::Reader::new();
    while let Some(taken) = io.next_record(&mut reader, |piece| receiver.receive(piece))? {
        if let Some(parts) = taken {
            receiver.receive_parts(io, &mut reader, parts)?;
        }
    }
    if request.sync {
        receiver.sync()?;
    }
    io.send_answer(&receiver.answer()?)
}

/// Creates the entries of a tree as their records arrive.
///
/// ```text
///  parent ── top ── directory ── directory     `entered`, the innermost last
///                                  └ entries are created here
/// ```
struct Receiver<'a> {
    root: &'a Root,
    request: &'a Receive<'a>,
    owner: NewOwner,
    /// The directory that the tree is in. `None` if nothing has arrived, or the tree
    /// is the root itself.
    parent: Option<Directory>,
    entered: Vec<ReceivedDirectory>,
    progress: Progress,
    /// The path of the current entry from the root, for failures.
    path: Vec<u8>,
    entries: u64,
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Begun,
    /// The tree is complete; nothing may follow.
    Complete,
}

impl<'a> Receiver<'a> {
    fn new(root: &'a Root, request: &'a Receive<'a>) -> JobResult<Self> {
        let mut path = Vec::from(request.path);
        while path.last() == Some(&b'/') {
            path.pop();
        }
        Ok(Self {
            root,
            request,
            owner: NewOwner::find(request.owner)?,
            parent: None,
            entered: Vec::new(),
            progress: Progress::Nothing,
            path,
            entries: 0,
            bytes: 0,
        })
    }

    /// Handles the next record. Returns the file whose parts follow, if any.
    fn receive(&mut self, piece: Piece<'_>) -> JobResult<Option<PartialFile>> {
        let Piece::Message(message) = piece else {
            return Err(malformed_tree());
        };
        let record: TreeRecord<'_> = record::decode(message)?;
        if !record.is_valid() || self.progress == Progress::Complete {
            return Err(malformed_tree());
        }
        match record {
            TreeRecord::Enter { name, meta } => {
                self.begin_entry(name, true)?;
                let attributes = meta.as_ref().map(Attributes::of);
                self.enter(name, attributes.as_ref())?;
                return Ok(None);
            }
            TreeRecord::Leave => return self.leave().map(|()| None),
            TreeRecord::File {
                name,
                meta,
                content,
            } => {
                self.begin_entry(name, false)?;
                let attributes = Attributes::of(&meta);
                match content {
                    Content::Inline(bytes) => {
                        self.make(name, |directory, name, owner| {
                            file::make_whole(directory, name, &attributes, bytes, owner)
                        })?;
                        self.count_bytes(bytes.len());
                    }
                    Content::Chunked { .. } => return Ok(Some(PartialFile::new(&attributes))),
                }
            }
            TreeRecord::Symlink { name, meta, target } => {
                self.begin_entry(name, false)?;
                let attributes = Attributes::of(&meta);
                self.make(name, |directory, name, owner| {
                    link::make_symlink(directory, name, target, &attributes, owner)
                })?;
            }
            TreeRecord::HardLink { name, to } => {
                // The target must be a file in the tree.
                let top = self.entered.first().ok_or_else(malformed_tree)?;
                let file =
                    link::find(top.directory(), to).map_err(|failure| failure.with_path(to))?;
                self.begin_entry(name, false)?;
                self.make(name, |directory, name, _| {
                    link::make_hard_link(directory, name, file.as_fd())
                })?;
            }
            TreeRecord::Skipped { name, .. } => self.begin_entry(name, false)?,
            _ => return Err(malformed_tree()),
        }
        self.end_entry();
        Ok(None)
    }

    /// Receives a file's parts up to its end.
    fn receive_parts(
        &mut self,
        io: &mut JobIo,
        reader: &mut record::Reader,
        parts: PartialFile,
    ) -> JobResult<()> {
        let directory = current(&self.entered, self.parent.as_ref()).ok_or_else(malformed_tree)?;
        let name = last_name(&self.path);
        let length = file::receive_parts(io, reader, directory, name, &parts, &self.owner)
            .map_err(|error| with_path(error, &self.path))?;
        self.bytes = self.bytes.saturating_add(length);
        self.entries = self.entries.saturating_add(1);
        self.end_entry();
        Ok(())
    }

    /// Sets `path` to the entry, and locates the first entry, the only one without a
    /// name.
    fn begin_entry(&mut self, name: &[u8], is_directory: bool) -> JobResult<()> {
        if name.is_empty() != (self.progress == Progress::Nothing) {
            return Err(malformed_tree());
        }
        if !name.is_empty() {
            self.path.push(b'/');
            self.path.extend_from_slice(name);
            return Ok(());
        }
        self.progress = Progress::Begun;
        if is_directory && self.enter_existing_top()? {
            return Ok(());
        }
        if self.path.is_empty() {
            return Err(directory_in_the_way().into());
        }
        let location = self
            .root
            .locate_creating_parents(self.request.path, &self.owner)?;
        let parent =
            Directory::new(location.directory).map_err(|failure| failure.with_path(&self.path))?;
        self.parent = Some(parent);
        Ok(())
    }

    /// Enters the top if it exists. Then links on the path to it are followed.
    fn enter_existing_top(&mut self) -> JobResult<bool> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.root.resolve(self.request.path, flags, Mode::empty()) {
            Ok(top) => {
                let top = Directory::new(top)?;
                self.entered
                    .push(ReceivedDirectory::existing(top, self.path.len()));
                Ok(true)
            }
            Err(ResolveError::Kernel(Errno::NOENT | Errno::NOTDIR)) => Ok(false),
            Err(why) => Err(super::root::resolve_error(why)),
        }
    }

    fn enter(&mut self, name: &[u8], attributes: Option<&Attributes<'_>>) -> JobResult<()> {
        let failed = |failure: FileError, path: &[u8]| JobError::from(failure.with_path(path));
        let is_there = name.is_empty() && !self.entered.is_empty();
        if !is_there {
            if self.entered.len() >= MAX_DEPTH {
                let failure = FileError::new(FailureKind::Limit, "the tree is too deep");
                return Err(failed(failure, &self.path));
            }
            let parent = current(&self.entered, self.parent.as_ref()).ok_or_else(malformed_tree)?;
            let name = last_name(&self.path);
            let entered =
                ReceivedDirectory::make(parent, name, attributes, &self.owner, self.path.len())
                    .map_err(|failure| failed(failure, &self.path))?;
            self.entered.push(entered);
        }
        let Some(entered) = self.entered.last_mut() else {
            return Err(malformed_tree());
        };
        entered
            .apply_metadata(attributes, &self.owner)
            .map_err(|failure| failed(failure, &self.path))?;
        if entered.is_new() {
            self.entries = self.entries.saturating_add(1);
        }
        Ok(())
    }

    fn leave(&mut self) -> JobResult<()> {
        let entered = self.entered.pop().ok_or_else(malformed_tree)?;
        self.path.truncate(entered.path());
        let left = entered
            .leave()
            .map_err(|failure| failure.with_path(&self.path));
        // The top is still needed: see `sync`.
        if self.entered.is_empty() {
            self.parent = Some(left?);
        } else {
            left?;
        }
        self.end_entry();
        Ok(())
    }

    /// Creates an entry in the current directory.
    fn make(
        &mut self,
        name: &[u8],
        make: impl FnOnce(&Directory, &[u8], &NewOwner) -> FileResult<()>,
    ) -> JobResult<()> {
        let directory = current(&self.entered, self.parent.as_ref()).ok_or_else(malformed_tree)?;
        let name = match name {
            b"" => last_name(&self.path),
            name => name,
        };
        make(directory, name, &self.owner).map_err(|failure| failure.with_path(&self.path))?;
        self.entries = self.entries.saturating_add(1);
        Ok(())
    }

    /// Handles the end of an entry.
    fn end_entry(&mut self) {
        match self.entered.last() {
            Some(entered) => self.path.truncate(entered.path()),
            None => self.progress = Progress::Complete,
        }
    }

    fn count_bytes(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(count);
    }

    /// Writes the file system of the tree back to the disk.
    fn sync(&self) -> JobResult<()> {
        let Some(directory) = current(&self.entered, self.parent.as_ref()) else {
            return Ok(());
        };
        let syncing = |errno| FileError::errno(errno, "making it safe on the disk");
        Ok(rustix::fs::syncfs(directory.as_fd()).map_err(syncing)?)
    }

    fn answer(&self) -> JobResult<FileReply<'static>> {
        if self.progress != Progress::Complete {
            return Err(FileError::new(FailureKind::Invalid, "the tree is not complete").into());
        }
        Ok(FileReply::Received {
            entries: self.entries,
            bytes: self.bytes,
        })
    }
}

/// Returns the directory in which entries are created now.
fn current<'d>(
    entered: &'d [ReceivedDirectory],
    parent: Option<&'d Directory>,
) -> Option<&'d Directory> {
    entered.last().map(ReceivedDirectory::directory).or(parent)
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Adds the path of the entry to a failure.
fn with_path(error: JobError, path: &[u8]) -> JobError {
    match error {
        JobError::Failed(failure) => failure.with_path(path).into(),
        JobError::Cancelled => JobError::Cancelled,
    }
}
