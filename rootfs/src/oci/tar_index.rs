use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use vmcell_archive::{ArchiveError, ArchiveReader, EntryKind};

/// How many files an archive of an image may have: each layer takes a few.
const MAX_FILES: usize = 100_000;

/// The files of a tar archive, which are read where they are.
#[derive(Clone, Debug)]
pub(super) struct TarIndex {
    archive: Arc<File>,
    files: Arc<BTreeMap<PathBuf, Place>>,
}

#[derive(Debug)]
enum Place {
    At {
        offset: u64,
        size: u64,
    },
    /// At another name of the archive.
    Link(PathBuf),
}

impl TarIndex {
    /// Finds all files. The archive is read once, and nothing of it is kept.
    pub(super) fn read(mut archive: File) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        archive.seek(SeekFrom::Start(0))?;
        let counted = Counted {
            reader: io::BufReader::with_capacity(256 << 10, &archive),
            read: 0,
        };
        let mut reader = ArchiveReader::new(counted);
        while let Some(entry) = reader.next_entry().map_err(unreadable)? {
            let name = path(reader.name());
            let place = match entry.kind {
                EntryKind::File {
                    stored,
                    sparse: None,
                } => Place::At {
                    offset: reader.get_mut().read,
                    size: stored,
                },
                // Relative to its folder.
                EntryKind::Symlink { target } => {
                    let folder = name.parent().unwrap_or(Path::new(""));
                    Place::Link(normal(&folder.join(path(&target))))
                }
                EntryKind::HardLink { target } => Place::Link(normal(&path(&target))),
                _ => continue,
            };
            files.insert(normal(&name), place);
            if files.len() > MAX_FILES {
                return Err(io::Error::other("the archive has too many files"));
            }
        }
        Ok(Self {
            archive: Arc::new(archive),
            files: Arc::new(files),
        })
    }

    /// Opens a file, if it is there.
    pub(super) fn open(&self, name: &Path) -> Option<impl Read + use<>> {
        let mut place = self.files.get(&normal(name))?;
        // A link leads to a file; none leads to another link.
        if let Place::Link(target) = place {
            place = self.files.get(target)?;
        }
        let Place::At { offset, size } = *place else {
            return None;
        };
        Some(Part {
            archive: Arc::clone(&self.archive),
            offset,
            left: size,
        })
    }
}

/// A part of a file.
struct Part {
    archive: Arc<File>,
    offset: u64,
    left: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt as _;
        let length = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.archive.read_at(&mut buffer[..length], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

struct Counted<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Returns a path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => drop(normal.pop()),
            _ => {}
        }
    }
    normal
}

fn unreadable(error: ArchiveError) -> io::Error {
    match error {
        ArchiveError::Io(error) => error,
        ArchiveError::NotAnArchive => {
            io::Error::other("it is no tar archive; a compressed one is to be unpacked first")
        }
        other => io::Error::other(other),
    }
}
