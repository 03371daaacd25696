use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmcell_archive::{ArchiveError, ArchiveReader, Device, Entry, EntryKind, SparseMap};

use crate::scan::is_portable;
use crate::scratch::ScratchFolder;
use crate::tree::normalize;
use crate::{ArchiveProblem, Content, Error, Kind, Node, Owner, Tree};

/// Limit on the number of entries; no distribution comes near it.
const MAX_ENTRIES: u64 = 1_000_000;
/// Limit on the sum of all file sizes, including holes.
const MAX_BYTES: u64 = 64 << 30;

impl Tree {
    /// Reads an uncompressed tar archive.
    ///
    /// Reads the formats of POSIX and GNU tar, including sparse files and files of any size. Absolute
    /// names are taken as relative to the root of the image. Keeps
    /// numeric owners, modes, modification times, symbolic and hard links, named pipes, device
    /// nodes, and the extended attributes that [`Tree::from_dir`] keeps. File contents are stored in
    /// a private temporary folder, which is removed when the tree and its clones are dropped.
    ///
    /// ```
    /// use vmcell_rootfs::{Owner, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut archive = tar::Builder::new(Vec::new());
    /// let mut header = tar::Header::new_gnu();
    /// header.set_mode(0o644);
    /// header.set_uid(1000);
    /// header.set_gid(1000);
    /// header.set_mtime(0);
    /// header.set_size(6);
    /// archive.append_data(&mut header, "./home/ann/note", &b"hello\n"[..])?;
    ///
    /// let tree = Tree::from_tar(&archive.into_inner()?[..])?;
    /// assert_eq!(tree.get("/home/ann/note").unwrap().owner, Owner { uid: 1000, gid: 1000 });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Archive`] and [`Error::Path`] for an entry that cannot be in an image, for example
    /// a path with `..`; [`Error::ArchiveUnreadable`]; [`Error::Write`] if the contents cannot be
    /// stored. Temporary files are removed.
    pub fn from_tar(archive: impl Read) -> Result<Self, Error> {
        let scratch = Arc::new(ScratchFolder::new()?);
        let mut unpacker = Unpacker {
            reader: ArchiveReader::new(archive),
            tree: Self::with_contents_in(Arc::clone(&scratch)),
            scratch,
            entries: 0,
            bytes: 0,
        };
        while let Some(entry) = unpacker.next_entry()? {
            unpacker.add_entry(entry)?;
        }
        Ok(unpacker.tree)
    }
}

/// The state of reading an archive into a tree.
struct Unpacker<R> {
    reader: ArchiveReader<R>,
    tree: Tree,
    scratch: Arc<ScratchFolder>,
    entries: u64,
    bytes: u64,
}

impl<R: Read> Unpacker<R> {
    fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        let entry = self.reader.next_entry();
        entry.map_err(|error| self.read_error(error))
    }

    fn add_entry(&mut self, entry: Entry) -> Result<(), Error> {
        let path = relative(to_path(self.reader.name()));
        let refuse = |problem| Error::Archive {
            path: path.clone(),
            problem,
        };
        self.count(&entry.kind).map_err(refuse)?;
        match self.tree.get(&path).map(|node| &node.kind) {
            None => {}
            Some(Kind::Directory) if entry.kind == EntryKind::Directory => {}
            Some(_) => return Err(refuse(ArchiveProblem::Duplicate)),
        }
        let numbers = |device: Option<Device>| {
            let device = device.ok_or_else(|| refuse(ArchiveProblem::BadNumber))?;
            Ok((device.major, device.minor))
        };
        let kind = match entry.kind {
            EntryKind::Directory => Kind::Directory,
            EntryKind::File { stored, sparse } => Kind::File(self.store_content(stored, sparse)?),
            EntryKind::Symlink { target } => Kind::Symlink(to_path(&target)),
            EntryKind::HardLink { target } => {
                let target = self.hard_link_target(&relative(to_path(&target)));
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
        let node = Node {
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
        };
        self.tree.insert(path, node)
    }

    fn count(&mut self, kind: &EntryKind) -> Result<(), ArchiveProblem> {
        let size = match kind {
            EntryKind::File {
                sparse: Some(map), ..
            } => map.length,
            EntryKind::File { stored, .. } => *stored,
            _ => 0,
        };
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.entries > MAX_ENTRIES || self.bytes > MAX_BYTES {
            return Err(ArchiveProblem::TooLarge);
        }
        Ok(())
    }

    /// Copies the content of a file into the scratch folder, which lives as long as the tree.
    fn store_content(&mut self, stored: u64, sparse: Option<SparseMap>) -> Result<Content, Error> {
        let path = self.scratch.path().join(self.entries.to_string());
        let write_error = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let mut file = File::create_new(&path).map_err(write_error)?;
        let map = sparse.unwrap_or_else(|| SparseMap {
            parts: vec![(0, stored)],
            length: stored,
        });
        for (offset, length) in map.parts {
            file.seek(SeekFrom::Start(offset)).map_err(write_error)?;
            self.copy(&mut file, length, write_error)?;
        }
        file.set_len(map.length).map_err(write_error)?;
        Ok(Content::HostFile(path))
    }

    /// Copies bytes of an entry. Distinguishes read errors from write errors.
    fn copy(
        &mut self,
        file: &mut File,
        mut left: u64,
        write_error: impl Fn(io::Error) -> Error,
    ) -> Result<(), Error> {
        let mut buffer = [0; 16 << 10];
        while left > 0 {
            let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let piece = &mut buffer[..length];
            let read = self.reader.read_exact(piece);
            read.map_err(|error| self.read_error(error))?;
            file.write_all(piece).map_err(&write_error)?;
            left -= length as u64;
        }
        Ok(())
    }

    /// Returns the file that a hard link refers to. Accepts only entries that came earlier in the
    /// archive, so that links cannot form cycles.
    fn hard_link_target(&self, text: &Path) -> Option<PathBuf> {
        match &self.tree.get(text)?.kind {
            Kind::Directory => None,
            Kind::HardLink(first) => Some(first.clone()),
            _ => normalize(text).ok(),
        }
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
