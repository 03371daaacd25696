use vmcell_wire::{
    Failure,
    files::{
        Content, FileKind, TreeRecord,
        record::{self, Piece, Reader},
    },
};

#[cfg(feature = "archive")]
use crate::transfer::archive::ArchiveWriter;
use crate::{
    printable,
    transfer::{
        SkippedEntry, TreeError, TreeProgress,
        budget::{Budget, check_depth},
        error::display_path,
        meta::kind_text,
        progress::{ProgressCallback, SkippedEntries},
    },
};

use super::{Destination, ReceiveOptions, Target, directory::DirectoryTarget};

/// Receives a stream of records, in pieces of any size, and writes it as a
/// tree.
///
/// ```text
///             File, Symlink, Skipped
///   Start ───────────────────────────> Complete
///     │                                   ▲
///     │ Enter          ┌─ Leave of the top┘
///     ▼                │
///   Inside <───────────┴──┐
///     │ File in parts     │ EndOfFile
///     └────> InFile ──────┘ (or to Complete, if the file is the top)
/// ```
///
/// The stream is untrusted. A record contains a single name at most, and that
/// is used only in the directory that was entered last, through its descriptor
/// and without following links. So nothing is ever written outside of the
/// destination, even if another process moves its entries meanwhile. A receiver
/// that is dropped before [`finish`](Self::finish) leaves only complete
/// entries.
pub struct Receiver<'a> {
    reader: Reader,
    handler: RecordHandler<'a>,
}

/// The result of receiving a tree.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Received {
    /// The number of entries that were created or replaced.
    pub entries: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
    /// The number of entries that the guest skipped: not a file, directory or
    /// symbolic link, or not readable.
    #[cfg_attr(feature = "serde", serde(rename = "left_out"))]
    pub skipped: u64,
    /// The first hundred skipped entries.
    #[cfg_attr(feature = "serde", serde(rename = "first_left_out"))]
    pub first_skipped: Vec<SkippedEntry>,
    /// The number of extended attributes that could not be preserved.
    pub lost_xattrs: u64,
    /// The number of files that changed their length while an archive was
    /// written, and were truncated or filled up with zeros.
    pub resized: u64,
}

impl<'a> Receiver<'a> {
    /// Creates a receiver at the start of a stream.
    ///
    /// # Errors
    /// If the destination cannot be written.
    pub fn new(destination: Destination, options: ReceiveOptions<'a>) -> Result<Self, TreeError> {
        let target: Box<dyn Target> = match destination {
            Destination::Path(path) => Box::new(DirectoryTarget::new(path, &options)),
            #[cfg(feature = "archive")]
            Destination::Archive {
                writer,
                format,
                name,
            } => Box::new(ArchiveWriter::new(writer, format, name)?),
            #[cfg(feature = "archive")]
            Destination::ArchiveFile { path, format, name } => {
                Box::new(ArchiveWriter::create_file(path, format, name)?)
            }
        };
        Ok(Self {
            reader: Reader::new(),
            handler: RecordHandler {
                target,
                budget: Budget::new(options.limits),
                progress: options.progress,
                skipped: SkippedEntries::default(),
                stage: Stage::Start,
                path: Vec::new(),
                parents: Vec::new(),
            },
        })
    }

    /// Takes the next bytes of the stream. After an error the receiver must not
    /// be used any more.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TreeError> {
        let handler = &mut self.handler;
        loop {
            match self.reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(Piece::Raw(bytes))) => handler.data(bytes)?,
                Ok(Some(Piece::Message(message))) => match record::decode(message) {
                    Ok(record) => handler.record(record)?,
                    Err(_) => return Err(handler.malformed("a record cannot be read")),
                },
                Err(_) => return Err(handler.malformed("a record is too large")),
            }
        }
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// [`TreeError::Malformed`] if the tree is not complete, and others of
    /// [`TreeError`].
    pub fn finish(self) -> Result<Received, TreeError> {
        let handler = self.handler;
        if !self.reader.is_between_records() || handler.stage != Stage::Complete {
            return Err(handler.malformed("it is truncated"));
        }
        if let Some(top) = handler.skipped.first.first()
            && handler.budget.entries == 0
        {
            return Err(TreeError::NotTransferable {
                path: display_path(&top.path),
                reason: top.reason.clone(),
            });
        }
        let losses = handler.target.finish()?;
        Ok(Received {
            entries: handler.budget.entries,
            bytes: handler.budget.bytes,
            skipped: handler.skipped.count,
            first_skipped: handler.skipped.first,
            lost_xattrs: losses.xattrs,
            resized: losses.resized,
        })
    }
}

/// Handles the records. It is separate from the reader because records borrow
/// from the reader.
struct RecordHandler<'a> {
    target: Box<dyn Target>,
    budget: Budget,
    progress: Option<ProgressCallback<'a>>,
    skipped: SkippedEntries,
    stage: Stage,
    /// The path of the directory that was entered last, or of the current file.
    path: Vec<u8>,
    /// The lengths of the paths of the open directories.
    parents: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Inside,
    InFile,
    Complete,
}

impl RecordHandler<'_> {
    fn record(&mut self, record: TreeRecord<'_>) -> Result<(), TreeError> {
        if !record.is_valid() {
            return Err(self.malformed("a name or a number is out of bounds"));
        }
        match record {
            TreeRecord::Enter { name, meta } => {
                check_depth(self.parents.len(), &self.path)?;
                self.begin_entry(name)?;
                self.target.enter(name, meta.as_ref(), &self.path)?;
                self.parents.push(self.path.len());
                self.stage = Stage::Inside;
                Ok(())
            }
            TreeRecord::Leave => self.leave(),
            TreeRecord::File {
                name,
                meta,
                content,
            } => {
                self.begin_entry(name)?;
                let (size, bytes) = match content {
                    Content::Inline(bytes) => (bytes.len() as u64, Some(bytes)),
                    Content::Chunked { size } => (size, None),
                };
                if self.target.fills_holes() {
                    // The archive will contain this many bytes in any case.
                    self.budget.reserve(size, &self.path)?;
                }
                self.target.begin_file(name, &meta, size, &self.path)?;
                self.stage = Stage::InFile;
                if let Some(bytes) = bytes {
                    self.data(bytes)?;
                    self.end_file()?;
                }
                Ok(())
            }
            TreeRecord::Hole { bytes } => self.hole(bytes),
            TreeRecord::EndOfFile => self.end_file(),
            TreeRecord::Symlink { name, meta, target } => {
                self.begin_entry(name)?;
                self.target.symlink(name, &meta, target, &self.path)?;
                self.end_entry();
                Ok(())
            }
            TreeRecord::HardLink { name, to } => {
                if self.stage == Stage::Start {
                    return Err(self.malformed("it starts with a hard link"));
                }
                self.begin_entry(name)?;
                self.target.hard_link(name, to, &self.path)?;
                self.end_entry();
                Ok(())
            }
            TreeRecord::Skipped {
                name,
                kind,
                failure,
            } => self.skip_entry(name, kind, failure),
            // The guest is newer than this program.
            _ => Err(self.malformed("a record is of an unknown kind")),
        }
    }

    /// Starts an entry, and makes its path the current one.
    fn begin_entry(&mut self, name: &[u8]) -> Result<(), TreeError> {
        self.append_name(name)?;
        self.budget.charge_entry(&self.path)?;
        self.report_progress();
        Ok(())
    }

    fn append_name(&mut self, name: &[u8]) -> Result<(), TreeError> {
        match self.stage {
            Stage::Start if name.is_empty() => Ok(()),
            Stage::Start => Err(self.malformed("the first record has a name")),
            Stage::Inside if name.is_empty() => Err(self.malformed("an entry has no name")),
            Stage::Inside => {
                if !self.path.is_empty() {
                    self.path.push(b'/');
                }
                self.path.extend_from_slice(name);
                Ok(())
            }
            Stage::InFile => Err(self.malformed("an entry inside of a file")),
            Stage::Complete => Err(self.malformed("records follow its end")),
        }
    }

    /// Returns to the directory that contains the entry.
    fn end_entry(&mut self) {
        match self.parents.last() {
            Some(length) => {
                self.path.truncate(*length);
                self.stage = Stage::Inside;
            }
            None => self.stage = Stage::Complete,
        }
    }

    fn leave(&mut self) -> Result<(), TreeError> {
        if self.stage != Stage::Inside {
            return Err(self.malformed("the end of a directory without its start"));
        }
        self.target.leave(&self.path)?;
        self.parents.pop();
        self.end_entry();
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        if self.stage != Stage::InFile {
            return Err(self.malformed("data outside of a file"));
        }
        self.budget.charge_data(bytes.len() as u64, &self.path)?;
        self.target.data(bytes, &self.path)?;
        self.report_progress();
        Ok(())
    }

    fn hole(&mut self, bytes: u64) -> Result<(), TreeError> {
        if self.stage != Stage::InFile {
            return Err(self.malformed("a hole outside of a file"));
        }
        if self.target.fills_holes() {
            self.budget.charge_data(bytes, &self.path)?;
        } else {
            self.budget.charge_hole(bytes, &self.path)?;
        }
        self.target.hole(bytes, &self.path)
    }

    fn end_file(&mut self) -> Result<(), TreeError> {
        if self.stage != Stage::InFile {
            return Err(self.malformed("the end of a file without its start"));
        }
        self.budget.charge_reserved(&self.path)?;
        self.target.end_file(&self.path)?;
        self.end_entry();
        Ok(())
    }

    fn skip_entry(
        &mut self,
        name: &[u8],
        kind: Option<FileKind>,
        failure: Option<Failure<'_>>,
    ) -> Result<(), TreeError> {
        self.append_name(name)?;
        let reason = match failure {
            Some(failure) => format!("it cannot be read: {}", printable(failure.text.as_bytes())),
            None => format!("it is {}", kind_text(kind)),
        };
        // They cost time, so the limit of entries applies to them too.
        let reported = usize::try_from(self.skipped.count).unwrap_or(usize::MAX);
        self.budget.check_entries(reported, &self.path)?;
        self.skipped.add(&self.path, reason);
        self.end_entry();
        Ok(())
    }

    fn report_progress(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress(TreeProgress {
                entries: self.budget.entries,
                bytes: self.budget.bytes,
                path: &self.path,
            });
        }
    }

    fn malformed(&self, reason: &'static str) -> TreeError {
        TreeError::Malformed {
            reason,
            path: display_path(&self.path),
        }
    }
}
