use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use vmcell_archive::{ArchiveError, ArchiveReader, Device, Entry, EntryKind};

use crate::contents::{Contents, StoreError};
use crate::scan::is_portable;
use crate::{ArchiveProblem, Error, Kind, Node, Owner};

/// Reads the entries of an archive as those of a tree.
pub(crate) struct Unpacker<'a, R> {
    reader: ArchiveReader<R>,
    contents: &'a mut Contents,
}

/// An entry of an archive whose content is not read yet.
pub(crate) struct Unpacked {
    /// Relative to the root of the image. It may contain `..`.
    pub(crate) path: PathBuf,
    entry: Entry,
}

impl Unpacked {
    pub(crate) fn is_directory(&self) -> bool {
        self.entry.kind == EntryKind::Directory
    }

    /// Returns the error for this entry.
    pub(crate) fn refuse(&self, problem: ArchiveProblem) -> Error {
        Error::Archive {
            path: self.path.clone(),
            problem,
        }
    }
}

impl<'a, R: Read> Unpacker<'a, R> {
    pub(crate) fn new(archive: R, contents: &'a mut Contents) -> Self {
        Self {
            reader: ArchiveReader::new(archive),
            contents,
        }
    }

    /// Accepts an archive without its end, if it is compared with a digest.
    pub(crate) fn with_optional_end(mut self) -> Self {
        self.reader = self.reader.with_optional_end();
        self
    }

    /// Returns the archive, of which all up to the next entry is read.
    pub(crate) fn archive(&mut self) -> &mut R {
        self.reader.get_mut()
    }

    pub(crate) fn next(&mut self) -> Result<Option<Unpacked>, Error> {
        let entry = self.reader.next_entry();
        let Some(entry) = entry.map_err(|error| self.read_error(error))? else {
            return Ok(None);
        };
        let unpacked = Unpacked {
            path: relative(to_path(self.reader.name())),
            entry,
        };
        let counted = self.contents.count(&unpacked.entry.kind);
        counted.map_err(|problem| unpacked.refuse(problem))?;
        Ok(Some(unpacked))
    }

    /// Returns the node of the current entry, and stores its content. `find` returns the file
    /// that a hard link leads to.
    pub(crate) fn node(
        &mut self,
        unpacked: Unpacked,
        find: impl FnOnce(&Path) -> Option<PathBuf>,
    ) -> Result<Node, Error> {
        let Unpacked { path, entry } = unpacked;
        let refuse = |problem| Error::Archive {
            path: path.clone(),
            problem,
        };
        let numbers = |device: Option<Device>| {
            let device = device.ok_or_else(|| refuse(ArchiveProblem::BadNumber))?;
            Ok((device.major, device.minor))
        };
        let kind = match entry.kind {
            EntryKind::Directory => Kind::Directory,
            EntryKind::File { stored, sparse } => {
                let content = self.contents.store(&mut self.reader, stored, sparse);
                Kind::File(content.map_err(|error| match error {
                    StoreError::Read(error) => self.read_error(error),
                    StoreError::Write(error) => error,
                })?)
            }
            EntryKind::Symlink { target } => Kind::Symlink(to_path(&target)),
            EntryKind::HardLink { target } => {
                let target = find(&relative(to_path(&target)));
                Kind::HardLink(target.ok_or_else(|| refuse(ArchiveProblem::BadHardLink))?)
            }
            EntryKind::Fifo => Kind::Fifo,
            EntryKind::CharacterDevice(device) => {
                let (major, minor) = numbers(device)?;
                Kind::CharDevice { major, minor }
            }
            EntryKind::BlockDevice(device) => {
                let (major, minor) = numbers(device)?;
                Kind::BlockDevice { major, minor }
            }
            EntryKind::Label | EntryKind::Unknown(_) => {
                return Err(refuse(ArchiveProblem::UnsupportedKind));
            }
        };
        let xattrs = entry.xattrs.into_iter();
        Ok(Node {
            kind,
            mode: entry.mode,
            owner: Owner {
                uid: entry.uid,
                gid: entry.gid,
            },
            modified: Some(entry.modified.seconds),
            xattrs: xattrs
                .filter(|(name, _)| is_portable(name))
                .map(|(name, value)| (OsString::from_vec(name), value))
                .collect(),
        })
    }

    fn read_error(&self, error: ArchiveError) -> Error {
        let problem = match error {
            ArchiveError::Io(source) => return Error::ArchiveUnreadable { source },
            ArchiveError::NotAnArchive | ArchiveError::Truncated | ArchiveError::Damaged => {
                let source = io::Error::other(error);
                return Error::ArchiveUnreadable { source };
            }
            ArchiveError::BadRecord | ArchiveError::BadNumber => ArchiveProblem::BadNumber,
            ArchiveError::HeadersTooLarge => ArchiveProblem::TooLong,
            ArchiveError::UnsupportedSparse => ArchiveProblem::Sparse,
        };
        Error::Archive {
            path: to_path(&self.reader.header_name()),
            problem,
        }
    }
}

/// Removes the slashes at the start of an absolute path, as other programs do.
fn relative(path: PathBuf) -> PathBuf {
    match path.strip_prefix("/") {
        Ok(path) => path.to_owned(),
        Err(_) => path,
    }
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
