use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, Mode};
use vmcell_wire::files::{Meta, Time, Xattrs};

use super::{
    ArchiveFormat,
    compression::Compressor,
    header::{BLOCK, HeaderBuf},
    names::Names,
    pax::PaxBuf,
};
use crate::transfer::{
    TreeError,
    error::{shown, shown_below},
    host_entry::HostEntry,
    receive::{Losses, Scratch, Target, Unfinished},
};

/// Zeros, for holes and padding.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A tree that becomes an archive, in POSIX's pax format.
///
/// A header says how long a file is before its bytes come, and it is written
/// at once. So a file that changes on its way is cut off or filled up with
/// zeros to what it was when the guest began with it, which is counted. Holes
/// are zeros.
///
/// No name comes twice, and hard links go to files that came before. So whoever
/// unpacks the archive is not led through a link, however trusting.
pub(in crate::transfer) struct ArchiveWriter {
    compressor: Compressor,
    file: Option<FileAt>,
    /// What the archive is called in errors.
    archive: PathBuf,
    /// The name of a tree that is a single entry.
    top_name: Vec<u8>,
    /// The paths so far, and of files what a link to them says again.
    names: Names<Option<Meta<'static>>>,
    /// How many bytes of a file are missing, and how many pad it.
    left: u64,
    padding: usize,
    /// Whether the file that is being written had another length than this.
    is_resized: bool,
    losses: Losses,
}

/// The file that an archive is written to, and the name that it will have.
struct FileAt {
    unfinished: Unfinished,
    directory: OwnedFd,
    name: Vec<u8>,
}

impl ArchiveWriter {
    pub(in crate::transfer) fn new(
        writer: Box<dyn Write + Send>,
        format: ArchiveFormat,
        top_name: Vec<u8>,
    ) -> Result<Self, TreeError> {
        Self::with(writer, format, top_name, PathBuf::from("the archive"))
    }

    /// An archive that is a file of the host.
    pub(in crate::transfer) fn at(
        path: PathBuf,
        format: ArchiveFormat,
        top_name: Vec<u8>,
    ) -> Result<Self, TreeError> {
        let unwritable = |error: io::Error| TreeError::write(shown_below(&path, b""), error);
        let file = FileAt::create(&path)?;
        let writer = file.unfinished.as_fd().try_clone_to_owned();
        let writer = Box::new(File::from(writer.map_err(unwritable)?));
        let mut archive = Self::with(writer, format, top_name, path)?;
        archive.file = Some(file);
        Ok(archive)
    }

    fn with(
        writer: Box<dyn Write + Send>,
        format: ArchiveFormat,
        top_name: Vec<u8>,
        archive: PathBuf,
    ) -> Result<Self, TreeError> {
        let compressor = Compressor::new(writer, format)
            .map_err(|error| TreeError::write(shown_below(&archive, b""), error))?;
        Ok(Self {
            compressor,
            file: None,
            archive,
            top_name,
            names: Names::new(),
            left: 0,
            padding: 0,
            is_resized: false,
            losses: Losses::default(),
        })
    }

    /// Writes a header, and before it what does not fit in there.
    fn header(
        &mut self,
        kind: u8,
        meta: &Meta<'_>,
        size: u64,
        link: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        let file = (kind == FILE).then_some(Meta {
            xattrs: Xattrs::NONE,
            ..*meta
        });
        if self.names.insert(path, file)?.is_some() {
            return Err(TreeError::Malformed {
                reason: "a name comes twice, which an archive cannot hold",
                path: shown(path),
            });
        }
        let name = match (path, kind) {
            (b"", DIRECTORY) => b"./".to_vec(),
            (b"", _) => self.top_name.clone(),
            (_, DIRECTORY) => [path, b"/"].concat(),
            _ => path.to_vec(),
        };
        let mut pax = PaxBuf::default();
        let mut header = HeaderBuf::new(kind);
        header.mode(meta.mode);
        if !header.name(&name) {
            pax.put("path", &name);
        }
        if !header.link_name(link) {
            pax.put("linkpath", link);
        }
        if !header.size(size) {
            pax.put_number("size", size);
        }
        if !header.owner(meta.uid, meta.gid) {
            pax.put_number("uid", meta.uid.into());
            pax.put_number("gid", meta.gid.into());
        }
        if !header.modified(meta.modified.seconds) || meta.modified.nanoseconds != 0 {
            pax.put_time("mtime", meta.modified);
        }
        self.losses.xattrs += pax.put_xattrs(meta);
        if !pax.is_empty() {
            self.pax(&pax)?;
        }
        self.write(&header.finish())
    }

    fn pax(&mut self, pax: &PaxBuf) -> Result<(), TreeError> {
        let records = pax.as_bytes();
        let mut header = HeaderBuf::new(b'x');
        header.name(b"pax");
        header.mode(0o644);
        header.owner(0, 0);
        header.modified(0);
        header.size(records.len() as u64);
        self.write(&header.finish())?;
        self.write(records)?;
        self.zeros(padding(records.len() as u64) as u64)
    }

    /// Bytes of the file; what is too much is cut off.
    fn fill(
        &mut self,
        count: u64,
        write: impl FnOnce(&mut Self, u64) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let taken = count.min(self.left);
        self.is_resized |= taken < count;
        self.left -= taken;
        write(self, taken)
    }

    fn zeros(&mut self, mut count: u64) -> Result<(), TreeError> {
        while count > 0 {
            let length = usize::try_from(count).unwrap_or(ZEROS.len());
            let zeros = ZEROS.get(..length).unwrap_or(&ZEROS);
            self.write(zeros)?;
            count -= zeros.len() as u64;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        self.compressor
            .write_all(bytes)
            .map_err(|error| TreeError::write(shown_below(&self.archive, b""), error))
    }
}

impl Target for ArchiveWriter {
    fn fills_holes(&self) -> bool {
        true
    }

    fn enter(
        &mut self,
        _name: &[u8],
        meta: Option<&Meta<'_>>,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.header(DIRECTORY, meta.unwrap_or(&PASSED_BY), 0, b"", path)
    }

    fn leave(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        Ok(())
    }

    fn begin_file(
        &mut self,
        _name: &[u8],
        meta: &Meta<'_>,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.header(FILE, meta, size, b"", path)?;
        self.left = size;
        self.padding = padding(size);
        self.is_resized = false;
        Ok(())
    }

    fn data(&mut self, bytes: &[u8], _path: &[u8]) -> Result<(), TreeError> {
        self.fill(bytes.len() as u64, |writer, taken| {
            let taken = usize::try_from(taken).unwrap_or(bytes.len());
            writer.write(bytes.get(..taken).unwrap_or(bytes))
        })
    }

    fn hole(&mut self, bytes: u64, _path: &[u8]) -> Result<(), TreeError> {
        self.fill(bytes, Self::zeros)
    }

    fn end_file(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        let is_resized = self.is_resized || self.left > 0;
        self.losses.resized += u64::from(is_resized);
        self.zeros(self.left)?;
        self.left = 0;
        self.zeros(self.padding as u64)
    }

    fn symlink(
        &mut self,
        _name: &[u8],
        meta: &Meta<'_>,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.header(SYMLINK, meta, 0, target, path)
    }

    fn hard_link(&mut self, _name: &[u8], to: &[u8], path: &[u8]) -> Result<(), TreeError> {
        let Some(Some(file)) = self.names.get(to).copied() else {
            return Err(TreeError::Malformed {
                reason: "a hard link to what is no file of this tree",
                path: shown(path),
            });
        };
        self.header(HARD_LINK, &file, 0, to, path)
    }

    fn finish(mut self: Box<Self>) -> Result<Losses, TreeError> {
        self.zeros(2 * BLOCK as u64)?;
        let unwritable =
            |error: io::Error| TreeError::write(shown_below(&self.archive, b""), error);
        self.compressor.finish().map_err(unwritable)?;
        if let Some(file) = self.file {
            let published = file.unfinished.publish(file.directory.as_fd(), &file.name);
            published.map_err(|errno| unwritable(errno.into()))?;
        }
        Ok(self.losses)
    }
}

impl FileAt {
    fn create(path: &Path) -> Result<Self, TreeError> {
        let entry = HostEntry::open(path)?;
        entry.check_replaceable(FileType::RegularFile)?;
        let (directory, name) = entry.into_parts();
        let mode = Mode::from_raw_mode(0o666);
        let unfinished = Unfinished::create(directory.as_fd(), mode, &mut Scratch::new())
            .map_err(|errno| TreeError::write(shown_below(path, b""), errno))?;
        Ok(Self {
            unfinished,
            directory,
            name,
        })
    }
}

const FILE: u8 = b'0';
const HARD_LINK: u8 = b'1';
const SYMLINK: u8 = b'2';
const DIRECTORY: u8 = b'5';

/// What is said of a directory that the guest says nothing of.
const PASSED_BY: Meta<'static> = Meta {
    mode: 0o755,
    uid: 0,
    gid: 0,
    modified: Time {
        seconds: 0,
        nanoseconds: 0,
    },
    xattrs: Xattrs::NONE,
};

fn padding(size: u64) -> usize {
    // Fewer than a block.
    usize::try_from(size.wrapping_neg() % BLOCK as u64).unwrap_or(0)
}
