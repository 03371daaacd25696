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
        LeftOut, TreeError, TreeProgress,
        budget::{Budget, check_depth},
        error::shown,
        meta::kind_text,
        progress::{LeftOuts, Tell},
    },
};

use super::{Destination, ReceiveOptions, Target, folder::Folder};

/// Takes a stream of records, however it is cut up, and makes it a tree.
///
/// ```text
///             File, Symlink, Skipped
///   Start ───────────────────────────> Complete
///     │                                   ▲
///     │ Enter          ┌─ Leave of the top┘
///     ▼                │
///   Inside <───────────┴──┐
///     │ File in parts     │ EndOfFile
///     └────> InFile ──────┘ (or to Complete, if the file is all)
/// ```
///
/// All of it is hostile. A record has a single name at most, and that is used
/// only in the directory that was entered last, through its descriptor and
/// without following links. So nothing is ever written outside of the chosen
/// place, whoever moves things around in it meanwhile. Dropped before
/// [`finish`](Self::finish), it leaves what was complete and nothing else.
pub struct Receiver<'a> {
    reader: Reader,
    taking: Taking<'a>,
}

/// What was received.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Received {
    /// How many entries were made or replaced.
    pub entries: u64,
    /// How many bytes their files have.
    pub bytes: u64,
    /// How many entries the guest left out: neither file nor directory nor
    /// link, or not to be read.
    pub left_out: u64,
    /// The first hundred of those.
    pub first_left_out: Vec<LeftOut>,
    /// How many extended attributes the host's file system did not take.
    pub lost_xattrs: u64,
    /// How many files changed their length on their way into an archive, and
    /// were cut off or filled up with zeros.
    pub resized: u64,
}

impl<'a> Receiver<'a> {
    /// A receiver at the beginning of a stream.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub fn new(destination: Destination, options: ReceiveOptions<'a>) -> Result<Self, TreeError> {
        let target: Box<dyn Target> = match destination {
            Destination::Path(path) => Box::new(Folder::new(path, &options)),
            #[cfg(feature = "archive")]
            Destination::Archive {
                writer,
                format,
                name,
            } => Box::new(ArchiveWriter::new(writer, format, name)?),
            #[cfg(feature = "archive")]
            Destination::ArchiveAt { path, format, name } => {
                Box::new(ArchiveWriter::at(path, format, name)?)
            }
        };
        Ok(Self {
            reader: Reader::new(),
            taking: Taking {
                target,
                budget: Budget::new(options.limits),
                progress: options.progress,
                left_outs: LeftOuts::default(),
                stage: Stage::Start,
                path: Vec::new(),
                parents: Vec::new(),
            },
        })
    }

    /// Takes the next bytes of the stream. After an error the receiver is of no
    /// use any more.
    ///
    /// # Errors
    /// As [`TreeError`] says.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TreeError> {
        let taking = &mut self.taking;
        loop {
            match self.reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(Piece::Raw(bytes))) => taking.data(bytes)?,
                Ok(Some(Piece::Message(message))) => match record::decode(message) {
                    Ok(record) => taking.record(record)?,
                    Err(_) => return Err(taking.malformed("a record cannot be read")),
                },
                Err(_) => return Err(taking.malformed("a record is too large")),
            }
        }
    }

    /// The stream is at its end.
    ///
    /// # Errors
    /// [`TreeError::Malformed`] if it must not end here, or what
    /// [`TreeError`] says.
    pub fn finish(self) -> Result<Received, TreeError> {
        let taking = self.taking;
        if !self.reader.is_between_records() || taking.stage != Stage::Complete {
            return Err(taking.malformed("it ends too early"));
        }
        if let Some(top) = taking.left_outs.first.first()
            && taking.budget.entries == 0
        {
            return Err(TreeError::LeftOut {
                path: shown(&top.path),
                reason: top.reason.clone(),
            });
        }
        let losses = taking.target.finish()?;
        Ok(Received {
            entries: taking.budget.entries,
            bytes: taking.budget.bytes,
            left_out: taking.left_outs.count,
            first_left_out: taking.left_outs.first,
            lost_xattrs: losses.xattrs,
            resized: losses.resized,
        })
    }
}

/// Everything but the reader, which lends what is being taken.
struct Taking<'a> {
    target: Box<dyn Target>,
    budget: Budget,
    progress: Option<Tell<'a>>,
    left_outs: LeftOuts,
    stage: Stage,
    /// Of the directory that was entered last, or of the file that was begun.
    path: Vec<u8>,
    /// How long the paths of the directories are that are open.
    parents: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Inside,
    InFile,
    Complete,
}

impl Taking<'_> {
    fn record(&mut self, record: TreeRecord<'_>) -> Result<(), TreeError> {
        if !record.is_valid() {
            return Err(self.malformed("a name or a number is out of bounds"));
        }
        match record {
            TreeRecord::Enter { name, meta } => {
                check_depth(self.parents.len(), &self.path)?;
                self.begin(name)?;
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
                self.begin(name)?;
                let (size, bytes) = match content {
                    Content::Whole(bytes) => (bytes.len() as u64, Some(bytes)),
                    Content::Parts { size } => (size, None),
                };
                if self.target.fills_holes() {
                    // As many bytes are going to be written, come what may.
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
                self.begin(name)?;
                self.target.symlink(name, &meta, target, &self.path)?;
                self.end_entry();
                Ok(())
            }
            TreeRecord::HardLink { name, to } => {
                if self.stage == Stage::Start {
                    return Err(self.malformed("it begins with a hard link"));
                }
                self.begin(name)?;
                self.target.hard_link(name, to, &self.path)?;
                self.end_entry();
                Ok(())
            }
            TreeRecord::Skipped {
                name,
                kind,
                failure,
            } => self.skipped(name, kind, failure),
            // A record of a guest that is newer than we are.
            _ => Err(self.malformed("a record is of no known kind")),
        }
    }

    /// Goes on to an entry: its path is the path now.
    fn begin(&mut self, name: &[u8]) -> Result<(), TreeError> {
        self.go_to(name)?;
        self.budget.entry(&self.path)?;
        self.tell();
        Ok(())
    }

    fn go_to(&mut self, name: &[u8]) -> Result<(), TreeError> {
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
            Stage::InFile => Err(self.malformed("an entry comes within a file")),
            Stage::Complete => Err(self.malformed("there is more behind its end")),
        }
    }

    /// Goes back from an entry to the directory that it is in.
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
            return Err(self.malformed("a directory ends that did not begin"));
        }
        self.target.leave(&self.path)?;
        self.parents.pop();
        self.end_entry();
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        if self.stage != Stage::InFile {
            return Err(self.malformed("bytes come without a file"));
        }
        self.budget.data(bytes.len() as u64, &self.path)?;
        self.target.data(bytes, &self.path)?;
        self.tell();
        Ok(())
    }

    fn hole(&mut self, bytes: u64) -> Result<(), TreeError> {
        if self.stage != Stage::InFile {
            return Err(self.malformed("a hole comes without a file"));
        }
        if self.target.fills_holes() {
            self.budget.data(bytes, &self.path)?;
        } else {
            self.budget.hole(bytes, &self.path)?;
        }
        self.target.hole(bytes, &self.path)
    }

    fn end_file(&mut self) -> Result<(), TreeError> {
        if self.stage != Stage::InFile {
            return Err(self.malformed("a file ends that did not begin"));
        }
        self.budget.settle(&self.path)?;
        self.target.end_file(&self.path)?;
        self.end_entry();
        Ok(())
    }

    fn skipped(
        &mut self,
        name: &[u8],
        kind: Option<FileKind>,
        failure: Option<Failure<'_>>,
    ) -> Result<(), TreeError> {
        self.go_to(name)?;
        let reason = match failure {
            Some(failure) => format!("it cannot be read: {}", printable(failure.text.as_bytes())),
            None => format!("it is {}", kind_text(kind)),
        };
        // They cost time, so there cannot be more of them than of entries.
        let told = usize::try_from(self.left_outs.count).unwrap_or(usize::MAX);
        self.budget.check_entries(told, &self.path)?;
        self.left_outs.add(&self.path, reason);
        self.end_entry();
        Ok(())
    }

    fn tell(&mut self) {
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
            path: shown(&self.path),
        }
    }
}
