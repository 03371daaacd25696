use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, Mode};
use tar::{EntryType, Header};
use vmcell_archive::{BLOCK, PaxBuf};
use vmcell_wire::files::{Metadata, Time, Xattrs};

use super::{ArchiveFormat, compression::Compressor, path_map::PathMap};
use crate::transfer::{
    TreeError,
    error::{display_path, display_path_below},
    host_entry::HostEntry,
    receive::{AtomicFile, Losses, Target, TempFileKind},
};

/// Zeros, for holes and padding.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Writes a tree as an archive in POSIX's pax format.
///
/// The header of a file contains its length and is written before its bytes. So
/// a file that changes while it is sent is truncated or filled up with zeros to
/// the announced length, and counted. Holes are written as zeros.
///
/// Every name is unique, and hard links lead to earlier files. So even a
/// program that trusts the archive does not follow a link of it when unpacking.
pub(in crate::transfer) struct ArchiveWriter {
    compressor: Compressor,
    file: Option<OutputFile>,
    /// The name of the archive in error messages.
    archive: PathBuf,
    /// The name of the entry if the tree is a single one.
    top_name: Vec<u8>,
    /// The paths so far, and for files the metadata, which hard links repeat.
    paths: PathMap<Option<Metadata<'static>>>,
    /// The remaining bytes of the file, and the padding after them.
    left: u64,
    padding: usize,
    /// Whether the current file had another length than announced.
    is_resized: bool,
    losses: Losses,
}

/// The file of an archive, and its final name.
struct OutputFile {
    temp: AtomicFile,
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

    /// Creates an archive file of the host.
    pub(in crate::transfer) fn create_file(
        path: PathBuf,
        format: ArchiveFormat,
        top_name: Vec<u8>,
    ) -> Result<Self, TreeError> {
        let unwritable = |error: io::Error| TreeError::write(display_path_below(&path, b""), error);
        let file = OutputFile::create(&path)?;
        let writer = file.temp.as_fd().try_clone_to_owned();
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
            .map_err(|error| TreeError::write(display_path_below(&archive, b""), error))?;
        Ok(Self {
            compressor,
            file: None,
            archive,
            top_name,
            paths: PathMap::new(),
            left: 0,
            padding: 0,
            is_resized: false,
            losses: Losses::default(),
        })
    }

    /// Writes a header, and before it pax records for values that do not fit.
    fn write_header(
        &mut self,
        kind: EntryType,
        meta: &Metadata<'_>,
        size: u64,
        link: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        let file = (kind == EntryType::Regular).then_some(Metadata {
            xattrs: Xattrs::NONE,
            ..*meta
        });
        if self.paths.insert(path, file)?.is_some() {
            return Err(TreeError::Malformed {
                reason: "a name appears twice, which is not allowed in an archive",
                path: display_path(path),
            });
        }
        let name = match (path, kind) {
            (b"", EntryType::Directory) => b"./".to_vec(),
            (b"", _) => self.top_name.clone(),
            (_, EntryType::Directory) => [path, b"/"].concat(),
            _ => path.to_vec(),
        };
        let mut pax = PaxBuf::default();
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(meta.mode.into());
        if !set_text(&mut header.as_old_mut().name, &name) {
            pax.put("path", &name);
        }
        if !set_text(&mut header.as_old_mut().linkname, link) {
            pax.put("linkpath", link);
        }
        header.set_size(size.min(MAX_SIZE));
        if size > MAX_SIZE {
            pax.put_number("size", size);
        }
        header.set_uid(meta.uid.min(MAX_ID).into());
        header.set_gid(meta.gid.min(MAX_ID).into());
        if meta.uid.max(meta.gid) > MAX_ID {
            pax.put_number("uid", meta.uid.into());
            pax.put_number("gid", meta.gid.into());
        }
        let time = meta.modified;
        let seconds = u64::try_from(time.seconds).unwrap_or(0).min(MAX_SIZE);
        header.set_mtime(seconds);
        if i64::try_from(seconds) != Ok(time.seconds) || time.nanoseconds != 0 {
            pax.put_time("mtime", time.seconds, time.nanoseconds);
        }
        for (name, value) in meta.xattrs.iter() {
            let is_written = name.starts_with(b"user.") && pax.put_xattr(name, value);
            self.losses.xattrs += u64::from(!is_written);
        }
        self.write_pax(pax.as_bytes())?;
        header.set_cksum();
        self.write(header.as_bytes())
    }

    /// Writes pax records, unless there are none.
    fn write_pax(&mut self, records: &[u8]) -> Result<(), TreeError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::XHeader);
        set_text(&mut header.as_old_mut().name, b"pax");
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(records.len() as u64);
        header.set_cksum();
        self.write(header.as_bytes())?;
        self.write(records)?;
        self.write_zeros(padding(records.len() as u64) as u64)
    }

    /// Writes bytes of the file. Drops those beyond the announced length.
    fn write_content(
        &mut self,
        count: u64,
        write: impl FnOnce(&mut Self, u64) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let taken = count.min(self.left);
        self.is_resized |= taken < count;
        self.left -= taken;
        write(self, taken)
    }

    fn write_zeros(&mut self, mut count: u64) -> Result<(), TreeError> {
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
            .map_err(|error| TreeError::write(display_path_below(&self.archive, b""), error))
    }
}

impl Target for ArchiveWriter {
    fn fills_holes(&self) -> bool {
        true
    }

    fn enter(
        &mut self,
        _name: &[u8],
        meta: Option<&Metadata<'_>>,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.write_header(
            EntryType::Directory,
            meta.unwrap_or(&DEFAULT_DIRECTORY_META),
            0,
            b"",
            path,
        )
    }

    fn leave(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        Ok(())
    }

    fn begin_file(
        &mut self,
        _name: &[u8],
        meta: &Metadata<'_>,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.write_header(EntryType::Regular, meta, size, b"", path)?;
        self.left = size;
        self.padding = padding(size);
        self.is_resized = false;
        Ok(())
    }

    fn data(&mut self, bytes: &[u8], _path: &[u8]) -> Result<(), TreeError> {
        self.write_content(bytes.len() as u64, |writer, taken| {
            let taken = usize::try_from(taken).unwrap_or(bytes.len());
            writer.write(bytes.get(..taken).unwrap_or(bytes))
        })
    }

    fn hole(&mut self, bytes: u64, _path: &[u8]) -> Result<(), TreeError> {
        self.write_content(bytes, Self::write_zeros)
    }

    fn end_file(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        let is_resized = self.is_resized || self.left > 0;
        self.losses.resized += u64::from(is_resized);
        self.write_zeros(self.left)?;
        self.left = 0;
        self.write_zeros(self.padding as u64)
    }

    fn symlink(
        &mut self,
        _name: &[u8],
        meta: &Metadata<'_>,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.write_header(EntryType::Symlink, meta, 0, target, path)
    }

    fn hard_link(&mut self, _name: &[u8], to: &[u8], path: &[u8]) -> Result<(), TreeError> {
        let Some(Some(file)) = self.paths.get(to).copied() else {
            return Err(TreeError::Malformed {
                reason: "a hard link to something that is not a file of this tree",
                path: display_path(path),
            });
        };
        self.write_header(EntryType::Link, &file, 0, to, path)
    }

    fn finish(mut self: Box<Self>) -> Result<Losses, TreeError> {
        self.write_zeros(2 * BLOCK as u64)?;
        let unwritable =
            |error: io::Error| TreeError::write(display_path_below(&self.archive, b""), error);
        self.compressor.finish().map_err(unwritable)?;
        if let Some(file) = self.file {
            let persisted = file.temp.persist(file.directory.as_fd(), &file.name);
            persisted.map_err(|errno| unwritable(errno.into()))?;
        }
        Ok(self.losses)
    }
}

impl OutputFile {
    fn create(path: &Path) -> Result<Self, TreeError> {
        let entry = HostEntry::open(path)?;
        entry.check_replaceable(FileType::RegularFile)?;
        let (directory, name) = entry.into_parts();
        let mode = Mode::from_raw_mode(0o666);
        let temp = AtomicFile::create(directory.as_fd(), mode, &mut TempFileKind::detect())
            .map_err(|errno| TreeError::write(display_path_below(path, b""), errno))?;
        Ok(Self {
            temp,
            directory,
            name,
        })
    }
}

/// The largest size or time of a header: 11 octal digits.
const MAX_SIZE: u64 = 0o77_777_777_777;

/// The largest user or group of a header: 7 octal digits.
const MAX_ID: u32 = 0o7_777_777;

/// The metadata of a directory for which the guest sent none.
const DEFAULT_DIRECTORY_META: Metadata<'static> = Metadata {
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
    // The result is smaller than a block.
    usize::try_from(size.wrapping_neg() % BLOCK as u64).unwrap_or(0)
}

/// Sets a field, as far as the text fits. Returns whether all of it did.
fn set_text(field: &mut [u8], text: &[u8]) -> bool {
    let length = field.len().min(text.len());
    field[..length].copy_from_slice(&text[..length]);
    length == text.len()
}
