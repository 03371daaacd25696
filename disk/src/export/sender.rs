use std::{collections::HashMap, io};

use vmcell_wire::{
    files::{Content, Metadata, TreeRecord, XattrsBuf},
    limits::MAX_INLINE,
    pattern::{Filter, Selection},
};

use super::{
    chunk_writer::ChunkWriter,
    file_budget::{FileBudget, FileSize},
    pending_directories::PendingDirectories,
};
use vmcell_tree::transfer::TreeError;

use crate::{
    Disk, DiskError, DiskProblem,
    entry::{wire_kind, wire_time},
    entry_filter::is_left_out,
    ext4::{self, Inode, Kind, RunPlace},
    path::shown,
    span::{Span, Spans},
    traversal::{Order, Step, Traversal},
};

/// Smaller files are sent without their holes.
const MIN_SPARSE_SIZE: u64 = 4096;

/// Maximum number of problems that are listed.
const MAX_PROBLEMS: usize = 100;

/// Approximate memory for remembering a file with several hard links, without
/// its path.
const HARD_LINK_MEMORY: usize = 64;

/// Sends a tree as the stream of records that a guest would send.
pub(super) struct Sender<'d> {
    disk: &'d Disk,
    chunks: ChunkWriter,
    filter: Filter,
    traversal: Traversal<'d>,
    directories: PendingDirectories,
    /// The path under which each file with several hard links was sent.
    links: HashMap<u32, Box<[u8]>>,
    budget: FileBudget,
    /// Buffer for small files.
    buffer: Vec<u8>,
    report: SendReport,
}

/// What could not be sent.
#[derive(Default)]
pub(super) struct SendReport {
    pub(super) problems: Vec<DiskProblem>,
    pub(super) problem_count: u64,
    pub(super) lost_xattrs: u64,
}

impl<'d> Sender<'d> {
    pub(super) fn new(
        disk: &'d Disk,
        chunks: ChunkWriter,
        filter: Filter,
        top: &[u8],
        budget: FileBudget,
    ) -> Self {
        Self {
            disk,
            chunks,
            filter,
            traversal: Traversal::new(disk, Order::Sorted, top, disk.budget()),
            directories: PendingDirectories::default(),
            links: HashMap::new(),
            budget,
            buffer: vec![0; MAX_INLINE],
            report: SendReport::default(),
        }
    }

    pub(super) fn send(mut self, top: &Inode) -> Result<SendReport, DiskError> {
        if top.kind == Kind::Directory {
            self.directory(top, b"", self.filter.select_root())?;
            self.send_directories()?;
            self.send_contents()?;
        } else {
            self.entry(top, b"")?;
        }
        self.chunks.finish()?;
        Ok(self.report)
    }

    /// Sends the contents of the directory that was entered.
    fn send_contents(&mut self) -> Result<(), DiskError> {
        while let Some(step) = self.traversal.next() {
            let result = match step {
                Ok(Step::Entry(inode)) => self.visit(&inode),
                Ok(Step::Left) => self.leave(),
                Err(_) if self.leaves_out_last() => Ok(()),
                Err(problem) => Err(problem.error),
            };
            match result {
                Err(error) if error.is_local() => self.problem(error),
                result => result?,
            }
        }
        Ok(())
    }

    /// Returns whether the patterns leave out the entry that could not be read.
    fn leaves_out_last(&self) -> bool {
        let parent = self.traversal.selection();
        let below = self.traversal.path_below();
        self.traversal.is_about_entry() && is_left_out(&self.filter, parent, below)
    }

    fn visit(&mut self, inode: &Inode) -> Result<(), DiskError> {
        let is_directory = inode.kind == Kind::Directory;
        let below = self.traversal.path_below();
        let selection = self
            .filter
            .select_within(self.traversal.selection(), below, is_directory);
        if selection == Selection::Skip {
            return Ok(());
        }
        let slash = below.iter().rposition(|byte| *byte == b'/');
        let name = below.get(slash.map_or(0, |slash| slash + 1)..);
        let name = name.unwrap_or_default().to_vec();
        if !is_directory {
            return self.entry(inode, &name);
        }
        self.directory(inode, &name, selection)?;
        if selection == Selection::Include {
            self.send_directories()?;
        }
        Ok(())
    }

    fn directory(
        &mut self,
        inode: &Inode,
        name: &[u8],
        selection: Selection,
    ) -> Result<(), DiskError> {
        let entered = self.traversal.enter(inode, selection);
        entered.map_err(|problem| problem.error)?;
        let xattrs = self.xattrs(inode);
        self.directories.enter(name, meta(inode, &xattrs));
        Ok(())
    }

    fn leave(&mut self) -> Result<(), DiskError> {
        if self.directories.leave() {
            self.put(&TreeRecord::Leave)?;
        }
        Ok(())
    }

    /// Sends an entry that is not a directory.
    fn entry(&mut self, inode: &Inode, name: &[u8]) -> Result<(), DiskError> {
        match inode.kind {
            Kind::File => self.file(inode, name),
            Kind::Symlink => self.symlink(inode, name),
            kind => {
                self.send_directories()?;
                self.put(&TreeRecord::Skipped {
                    name,
                    kind: Some(wire_kind(kind)),
                    failure: None,
                })
            }
        }
    }

    fn symlink(&mut self, inode: &Inode, name: &[u8]) -> Result<(), DiskError> {
        let target = self.disk.ext4.read_link(inode);
        let target = target.map_err(|error| self.at(error))?;
        // A target can be one byte longer than a system call accepts.
        self.traversal.budget.check_path(&target)?;
        self.send_directories()?;
        self.put(&TreeRecord::Symlink {
            name,
            meta: meta(inode, &XattrsBuf::new()),
            target: &target,
        })
    }

    fn file(&mut self, inode: &Inode, name: &[u8]) -> Result<(), DiskError> {
        if let Some(first) = self.links.get(&inode.number) {
            let to = first.clone();
            self.send_directories()?;
            return self.put(&TreeRecord::HardLink { name, to: &to });
        }
        let is_sparse = inode.allocated < inode.size && inode.size > MIN_SPARSE_SIZE;
        if inode.size <= MAX_INLINE as u64 && !is_sparse {
            self.whole_file(inode, name)?;
        } else {
            self.file_in_parts(inode, name)?;
        }
        if inode.links > 1 {
            let path = self.traversal.path_below().to_vec();
            let memory = HARD_LINK_MEMORY + path.len();
            self.traversal.budget.reserve(memory, &path)?;
            self.links.insert(inode.number, path.into_boxed_slice());
        }
        Ok(())
    }

    fn whole_file(&mut self, inode: &Inode, name: &[u8]) -> Result<(), DiskError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = self.disk.ext4.read(inode, 0, &mut buffer);
        let result = count.map_err(|error| self.at(error)).and_then(|count| {
            self.budget
                .count(FileSize::whole(inode), self.traversal.path())?;
            let content = Content::Inline(buffer.get(..count).unwrap_or_default());
            self.put_file(inode, name, content)
        });
        self.buffer = buffer;
        result
    }

    fn file_in_parts(&mut self, inode: &Inode, name: &[u8]) -> Result<(), DiskError> {
        // Check the block map first: damage found after the file has begun
        // would end the export.
        let size = self.check_map(inode)?;
        self.budget.count(size, self.traversal.path())?;
        self.put_file(inode, name, Content::Chunked { size: inode.size })?;
        let disk = self.disk;
        for span in Spans::new(&disk.ext4, inode) {
            let span = span.map_err(|error| failed_mid_file(self.traversal.path(), error))?;
            if span.is_hole {
                self.traversal.budget.check_time(self.traversal.path())?;
                self.put(&TreeRecord::Hole { bytes: span.length })?;
            } else {
                self.data(inode, span)?;
            }
        }
        self.put(&TreeRecord::EndOfFile)
    }

    /// Checks that all blocks of a file are mapped and within the image, and
    /// adds them up.
    fn check_map(&self, inode: &Inode) -> Result<FileSize, DiskError> {
        if inode.is_encrypted() {
            let inode = inode.number;
            return Err(self.at(ext4::Error::Encrypted { inode }));
        }
        let mut size = FileSize::sparse(inode);
        for run in self.disk.ext4.runs(inode) {
            let run = run.map_err(|error| self.at(error))?;
            size.add(&run);
            self.traversal.budget.check_time(self.traversal.path())?;
            if let RunPlace::Data(start) = run.place
                && start.saturating_add(run.length) > self.disk.length
            {
                // The image is truncated.
                return Err(self.at(ext4::Error::Read {
                    offset: self.disk.length,
                    source: io::ErrorKind::UnexpectedEof.into(),
                }));
            }
        }
        Ok(size)
    }

    fn data(&mut self, inode: &Inode, span: Span) -> Result<(), DiskError> {
        let (disk, path) = (self.disk, self.traversal.path());
        let mut done = 0;
        while done < span.length {
            self.traversal.budget.check_time(path)?;
            let count = self.chunks.raw(span.length - done, |part| {
                let count = disk.ext4.read(inode, span.offset + done, part);
                count.map_err(|error| failed_mid_file(path, error))
            })?;
            if count == 0 {
                break;
            }
            done += count;
        }
        Ok(())
    }

    fn put_file(
        &mut self,
        inode: &Inode,
        name: &[u8],
        content: Content<'_>,
    ) -> Result<(), DiskError> {
        let xattrs = self.xattrs(inode);
        self.send_directories()?;
        self.put(&TreeRecord::File {
            name,
            meta: meta(inode, &xattrs),
            content,
        })
    }

    fn put(&mut self, message: &TreeRecord<'_>) -> Result<(), DiskError> {
        Ok(self.chunks.record(message)?)
    }

    fn send_directories(&mut self) -> Result<(), DiskError> {
        Ok(self.chunks.records(&self.directories.take())?)
    }

    /// Returns the `user.*` attributes. The others are specific to the guest
    /// system.
    fn xattrs(&mut self, inode: &Inode) -> XattrsBuf {
        let mut xattrs = XattrsBuf::new();
        for attribute in self.disk.ext4.attributes(inode) {
            let is_kept = match &attribute {
                Ok(attribute) if !attribute.name.starts_with(b"user.") => true,
                Ok(attribute) => xattrs.push(&attribute.name, &attribute.value),
                Err(_) => false,
            };
            self.report.lost_xattrs += u64::from(!is_kept);
        }
        xattrs
    }

    fn problem(&mut self, error: DiskError) {
        self.report.problem_count += 1;
        if self.report.problems.len() < MAX_PROBLEMS {
            let problem = DiskProblem::new(self.traversal.path(), error);
            self.report.problems.push(problem);
        }
    }

    fn at(&self, error: ext4::Error) -> DiskError {
        DiskError::at(self.traversal.path(), error)
    }
}

/// Returns the error for a read failure in the middle of a file, after which
/// the stream cannot continue.
fn failed_mid_file(path: &[u8], error: ext4::Error) -> DiskError {
    DiskError::Tree(TreeError::Read {
        path: shown(path),
        source: io::Error::other(DiskError::at(path, error)),
    })
}

fn meta<'a>(inode: &Inode, xattrs: &'a XattrsBuf) -> Metadata<'a> {
    Metadata {
        mode: inode.mode,
        uid: inode.uid,
        gid: inode.gid,
        modified: wire_time(inode.modified),
        xattrs: xattrs.as_xattrs(),
    }
}
