use std::{
    io::{self, Read},
    path::Path,
};

use vmcell_archive::{ArchiveError, Entry, EntryKind};
use vmcell_wire::files::{Time, XattrsBuf};

use super::{
    ArchiveProblem, OtherFormat,
    compression::{Decompressed, decompress},
    entry_name::normal_path,
};
use crate::transfer::{
    TreeError,
    error::{display_path, display_path_below},
    meta::MetaBuf,
};

/// How much is read after the end of an archive, to verify the checksum of the
/// compression: tar pads archives.
const MAX_TRAILING_BYTES: u64 = 1 << 20;

/// An entry of an archive, with a valid name.
pub(super) struct ArchiveEntry {
    /// The path relative to the top; empty for the top itself.
    pub(super) path: Vec<u8>,
    /// A known kind. The target of a hard link is a path like the above.
    pub(super) kind: EntryKind,
    pub(super) meta: MetaBuf,
    pub(super) lost_xattrs: u64,
}

/// Reads the entries of an archive, plain or compressed, and checks their names.
pub(super) struct ArchiveReader<'a> {
    reader: vmcell_archive::ArchiveReader<Box<dyn Read + Send>>,
    /// The name of the archive in error messages.
    archive: &'a Path,
    /// What the archive seems to be until its first header was read.
    other_format: Option<OtherFormat>,
}

impl<'a> ArchiveReader<'a> {
    pub(super) fn new(reader: Box<dyn Read + Send>, archive: &'a Path) -> Result<Self, TreeError> {
        let opened = |decompressed: Decompressed| Self {
            reader: vmcell_archive::ArchiveReader::new(decompressed.reader),
            archive,
            other_format: decompressed.other_format,
        };
        let unreadable = Decompressed {
            reader: Box::new(io::empty()),
            other_format: None,
        };
        decompress(reader)
            .map(opened)
            .map_err(|error| opened(unreadable).error(error.into()))
    }

    /// Advances to the next entry. Skips the unread rest of the current one.
    pub(super) fn next(&mut self) -> Result<Option<ArchiveEntry>, TreeError> {
        let other_format = self.other_format.take();
        match (self.reader.next_entry(), other_format) {
            (Err(ArchiveError::NotAnArchive | ArchiveError::Truncated), Some(format)) => {
                Err(self.problem(ArchiveProblem::OtherFormat(format)))
            }
            (Ok(Some(entry)), _) => self
                .checked(entry)
                .map(Some)
                .map_err(|problem| self.problem(problem)),
            (Ok(None), _) => self.drain().map(|()| None),
            (Err(error), _) => Err(self.error(error)),
        }
    }

    /// Reads bytes of the entry. Returns 0 only at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TreeError> {
        self.reader.read(buffer).map_err(|error| self.error(error))
    }

    pub(super) fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), TreeError> {
        let filled = self.reader.read_exact(buffer);
        filled.map_err(|error| self.error(error))
    }

    pub(super) fn problem(&self, problem: ArchiveProblem) -> TreeError {
        let entry = match self.reader.name() {
            b"" => display_path_below(self.archive, b""),
            name => display_path(name),
        };
        TreeError::Archive { entry, problem }
    }

    fn checked(&self, mut entry: Entry) -> Result<ArchiveEntry, ArchiveProblem> {
        let path = normal_path(self.reader.name())?;
        match &mut entry.kind {
            EntryKind::HardLink { target } => {
                *target = normal_path(target).map_err(|_| ArchiveProblem::BadHardLink)?;
            }
            EntryKind::Unknown(_) => return Err(ArchiveProblem::Unsupported),
            _ => {}
        }
        let mut xattrs = XattrsBuf::new();
        let mut lost_xattrs = 0;
        for (name, value) in &entry.xattrs {
            if name.starts_with(b"user.") {
                lost_xattrs += u64::from(!xattrs.push(name, value));
            }
        }
        let meta = MetaBuf {
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            modified: Time {
                seconds: entry.modified.seconds,
                nanoseconds: entry.modified.nanoseconds,
            },
            xattrs,
        };
        Ok(ArchiveEntry {
            path,
            kind: entry.kind,
            meta,
            lost_xattrs,
        })
    }

    /// Reads the padding after the archive, so that the decompressor verifies
    /// its checksum.
    fn drain(&mut self) -> Result<(), TreeError> {
        let mut rest = self.reader.get_mut().take(MAX_TRAILING_BYTES);
        let drained = io::copy(&mut rest, &mut io::sink());
        drained
            .map(|_| ())
            .map_err(|error| self.error(error.into()))
    }

    fn error(&self, error: ArchiveError) -> TreeError {
        self.problem(match error {
            ArchiveError::Io(error) if error.raw_os_error().is_some() => {
                return TreeError::read(display_path_below(self.archive, b""), error);
            }
            ArchiveError::NotAnArchive => ArchiveProblem::NotAnArchive,
            ArchiveError::Truncated => ArchiveProblem::Truncated,
            // The other errors of a reader are those of the decompressor.
            ArchiveError::Damaged | ArchiveError::BadRecord | ArchiveError::Io(_) => {
                ArchiveProblem::Damaged
            }
            ArchiveError::BadNumber => ArchiveProblem::BadNumber,
            ArchiveError::HeadersTooLarge => ArchiveProblem::HeadersTooLarge,
            ArchiveError::UnsupportedSparse => ArchiveProblem::Unsupported,
        })
    }
}
