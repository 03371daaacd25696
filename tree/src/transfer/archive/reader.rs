use std::{
    io::{self, Read},
    path::Path,
};

use super::{
    ArchiveProblem,
    compression::decompress,
    entry_name::normal_path,
    header::{BLOCK, Header, more_parts},
    pax::Pax,
    sparse::{MAX_PARTS, Parts, SparseMap},
};
use crate::transfer::{
    TreeError,
    error::{display_path, display_path_below},
    meta::MetaBuf,
};

/// The size limit for the extension headers before an entry: long names and pax
/// records, of which attributes take at most 64 KiB.
const MAX_EXTENSION_BYTES: u64 = 256 * 1024;

/// The limit for the number of headers of an entry.
const MAX_HEADERS: u32 = 16;

/// How much is read after the end of an archive, to verify the checksum of the
/// compression: tar pads archives.
const MAX_TRAILING_BYTES: u64 = 1 << 20;

/// An entry of an archive.
pub(super) struct ArchiveEntry {
    /// The path relative to the top; empty for the top itself.
    pub(super) path: Vec<u8>,
    pub(super) kind: ArchiveEntryKind,
    pub(super) meta: MetaBuf,
    pub(super) lost_xattrs: u64,
}

/// The kind of an [`ArchiveEntry`].
pub(super) enum ArchiveEntryKind {
    Directory,
    /// A file; `stored` bytes of it follow.
    File {
        stored: u64,
        /// Where the bytes belong, if the file has holes.
        sparse: Option<SparseMap>,
    },
    Symlink {
        target: Vec<u8>,
    },
    HardLink {
        to: Vec<u8>,
    },
    /// An entry to skip, and the reason.
    Other(&'static str),
}

/// Reads the entries of an archive, one after the other.
pub(super) struct ArchiveReader<'a> {
    reader: Box<dyn Read + Send>,
    /// The name of the archive in error messages.
    archive: &'a Path,
    /// The name of the current entry, as the archive states it.
    name: Vec<u8>,
    /// The remaining bytes of the entry, and the padding after them.
    left: u64,
    padding: u64,
    is_first: bool,
}

impl<'a> ArchiveReader<'a> {
    pub(super) fn new(reader: Box<dyn Read + Send>, archive: &'a Path) -> Result<Self, TreeError> {
        let mut opened = Self {
            reader: Box::new(io::empty()),
            archive,
            name: Vec::new(),
            left: 0,
            padding: 0,
            is_first: true,
        };
        opened.reader = decompress(reader).map_err(|error| opened.unreadable(error))?;
        Ok(opened)
    }

    /// Advances to the next entry. Skips the unread rest of the current one.
    pub(super) fn next(&mut self) -> Result<Option<ArchiveEntry>, TreeError> {
        let mut pax = Pax::default();
        let mut long_name = None;
        let mut long_link = None;
        let mut extension_bytes = 0_u64;
        for _ in 0..MAX_HEADERS {
            self.skip(self.left.saturating_add(self.padding))?;
            (self.left, self.padding) = (0, 0);

            let block = self.block()?;
            let header = match Header::read(&block) {
                Ok(Some(header)) => header,
                Ok(None) => {
                    self.drain()?;
                    return Ok(None);
                }
                Err(_) if self.is_first => {
                    return Err(self.problem(ArchiveProblem::NotAnArchive));
                }
                Err(problem) => return Err(self.problem(problem)),
            };
            self.is_first = false;
            let kind = header.kind();
            if !matches!(kind, b'L' | b'K' | b'x' | b'X' | b'g') {
                let names = (long_name, long_link);
                return self.entry(&header, pax, names).map(Some);
            }
            let size = header.size().map_err(|problem| self.problem(problem))?;
            extension_bytes = extension_bytes.saturating_add(size);
            if extension_bytes > MAX_EXTENSION_BYTES {
                return Err(self.problem(ArchiveProblem::HeadersTooLarge));
            }
            self.set_size(size);
            let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
            self.read_exact(&mut bytes)?;
            match kind {
                b'L' => long_name = Some(until_nul(bytes)),
                b'K' => long_link = Some(until_nul(bytes)),
                // Global headers apply to all entries. They are ignored.
                b'g' => {}
                _ => pax.add(&bytes).map_err(|problem| self.problem(problem))?,
            }
        }
        Err(self.problem(ArchiveProblem::HeadersTooLarge))
    }

    /// Reads bytes of the entry. Returns 0 only at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TreeError> {
        let max = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = buffer.len().min(max);
        let Some(buffer) = buffer.get_mut(..length).filter(|buffer| !buffer.is_empty()) else {
            return Ok(0);
        };
        match retry(|| self.reader.read(buffer)) {
            Ok(0) => Err(self.problem(ArchiveProblem::Truncated)),
            Ok(count) => {
                self.left = self.left.saturating_sub(count as u64);
                Ok(count)
            }
            Err(error) => Err(self.unreadable(error)),
        }
    }

    pub(super) fn read_exact(&mut self, mut buffer: &mut [u8]) -> Result<(), TreeError> {
        while !buffer.is_empty() {
            let count = self.read(buffer)?;
            if count == 0 {
                return Err(self.problem(ArchiveProblem::BadNumber));
            }
            buffer = buffer.get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }

    pub(super) fn problem(&self, problem: ArchiveProblem) -> TreeError {
        let entry = if self.name.is_empty() {
            display_path_below(self.archive, b"")
        } else {
            display_path(&self.name)
        };
        TreeError::Archive { entry, problem }
    }

    fn entry(
        &mut self,
        header: &Header<'_>,
        mut pax: Pax,
        (long_name, long_link): (Option<Vec<u8>>, Option<Vec<u8>>),
    ) -> Result<ArchiveEntry, TreeError> {
        let name = pax.path.take().or(long_name);
        self.name = name.unwrap_or_else(|| header.name());
        let link = pax.link_path.take().or(long_link);
        let link = link.unwrap_or_else(|| header.link_name().to_vec());
        let is_directory = self.name.ends_with(b"/");

        let checked = (|| {
            let size = pax.size.map_or_else(|| header.size(), Ok)?;
            let meta = meta(header, &mut pax)?;
            Ok((normal_path(&self.name)?, size, meta))
        })();
        let (path, size, meta) = checked.map_err(|problem| self.problem(problem))?;
        let kind = match header.kind() {
            b'0' | 0 if is_directory => ArchiveEntryKind::Directory,
            b'0' | b'7' | 0 => {
                self.set_size(size);
                self.file(&pax)?
            }
            b'S' => {
                let map = self.old_gnu_sparse_map(header, size)?;
                self.set_size(size);
                ArchiveEntryKind::File {
                    stored: size,
                    sparse: Some(map),
                }
            }
            b'1' => ArchiveEntryKind::HardLink {
                to: normal_path(&link).map_err(|_| self.problem(ArchiveProblem::BadHardLink))?,
            },
            b'2' => ArchiveEntryKind::Symlink { target: link },
            b'3' => ArchiveEntryKind::Other("it is a character device"),
            b'4' => ArchiveEntryKind::Other("it is a block device"),
            b'5' => ArchiveEntryKind::Directory,
            b'6' => ArchiveEntryKind::Other("it is a named pipe"),
            b'V' => ArchiveEntryKind::Other("it is the archive's label"),
            _ => return Err(self.problem(ArchiveProblem::Unsupported)),
        };
        // Programs differ in whether bytes follow an entry that is not a file,
        // and attackers use that to hide entries from one of them.
        if !matches!(kind, ArchiveEntryKind::File { .. }) && size != 0 {
            return Err(self.problem(ArchiveProblem::BadNumber));
        }
        Ok(ArchiveEntry {
            path,
            kind,
            meta,
            lost_xattrs: pax.lost_xattrs,
        })
    }

    /// Reads the start of a file: for a sparse one, pax stores the map there.
    fn file(&mut self, pax: &Pax) -> Result<ArchiveEntryKind, TreeError> {
        let sparse = match (pax.sparse_version, pax.is_old_sparse) {
            ((None, None), false) => None,
            ((Some(1), Some(0)), false) => {
                let parts = self.pax_sparse_parts()?;
                let length = pax.sparse_size.unwrap_or(0);
                let map = SparseMap::new(parts, length, self.left);
                Some(map.map_err(|problem| self.problem(problem))?)
            }
            _ => return Err(self.problem(ArchiveProblem::Unsupported)),
        };
        Ok(ArchiveEntryKind::File {
            stored: self.left,
            sparse,
        })
    }

    /// Reads the map of a sparse file: the number of parts, then offset and
    /// length of each, one number per line, padded to whole blocks.
    fn pax_sparse_parts(&mut self) -> Result<Parts, TreeError> {
        let mut numbers = Vec::new();
        let mut number: Option<u64> = None;
        let mut wanted = 1;
        while numbers.len() < wanted {
            let mut block = [0; BLOCK];
            self.read_exact(&mut block)?;
            for byte in block {
                if numbers.len() == wanted {
                    break;
                }
                match (byte, number) {
                    (b'\n', Some(complete)) => {
                        numbers.push(complete);
                        number = None;
                        if numbers.len() == 1 {
                            let parts = usize::try_from(complete).unwrap_or(usize::MAX);
                            if parts > MAX_PARTS {
                                return Err(self.problem(ArchiveProblem::HeadersTooLarge));
                            }
                            wanted = 1 + 2 * parts;
                        }
                    }
                    (b'0'..=b'9', so_far) => {
                        number = so_far
                            .unwrap_or(0)
                            .checked_mul(10)
                            .and_then(|number| number.checked_add(u64::from(byte - b'0')));
                        if number.is_none() {
                            return Err(self.problem(ArchiveProblem::BadNumber));
                        }
                    }
                    _ => return Err(self.problem(ArchiveProblem::BadNumber)),
                }
            }
        }
        let pairs = numbers.get(1..).unwrap_or_default().chunks_exact(2);
        Ok(pairs.map(|pair| (pair[0], pair[1])).collect())
    }

    /// Reads the map in GNU's old format, which continues in additional blocks.
    fn old_gnu_sparse_map(
        &mut self,
        header: &Header<'_>,
        stored: u64,
    ) -> Result<SparseMap, TreeError> {
        let (mut parts, mut is_continued, length) =
            header.sparse().map_err(|problem| self.problem(problem))?;
        while is_continued {
            let block = self.block()?;
            let (more, again) = more_parts(&block).map_err(|problem| self.problem(problem))?;
            if more.is_empty() || parts.len() > MAX_PARTS {
                return Err(self.problem(ArchiveProblem::HeadersTooLarge));
            }
            parts.extend(more);
            is_continued = again;
        }
        SparseMap::new(parts, length, stored).map_err(|problem| self.problem(problem))
    }

    fn set_size(&mut self, size: u64) {
        self.left = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }

    fn block(&mut self) -> Result<[u8; BLOCK], TreeError> {
        let mut block = [0; BLOCK];
        match self.reader.read_exact(&mut block) {
            Ok(()) => Ok(block),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn skip(&mut self, count: u64) -> Result<(), TreeError> {
        let skipped = io::copy(&mut (&mut self.reader).take(count), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == count => Ok(()),
            Ok(_) => Err(self.problem(ArchiveProblem::Truncated)),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Reads the padding after the archive, so that the decompressor verifies
    /// its checksum.
    fn drain(&mut self) -> Result<(), TreeError> {
        let drained = io::copy(
            &mut (&mut self.reader).take(MAX_TRAILING_BYTES),
            &mut io::sink(),
        );
        match drained {
            Ok(_) => Ok(()),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn unreadable(&self, error: io::Error) -> TreeError {
        if error.raw_os_error().is_some() {
            return TreeError::read(display_path_below(self.archive, b""), error);
        }
        self.problem(match error.kind() {
            io::ErrorKind::UnexpectedEof => ArchiveProblem::Truncated,
            _ => ArchiveProblem::Damaged,
        })
    }
}

fn meta(header: &Header<'_>, pax: &mut Pax) -> Result<MetaBuf, ArchiveProblem> {
    let modified = match pax.modified {
        Some(modified) => modified,
        None => vmcell_wire::files::Time {
            seconds: header.modified()?,
            nanoseconds: 0,
        },
    };
    Ok(MetaBuf {
        mode: header.mode()?,
        uid: pax.uid.map_or_else(|| header.uid(), Ok)?,
        gid: pax.gid.map_or_else(|| header.gid(), Ok)?,
        modified,
        xattrs: std::mem::take(&mut pax.xattrs),
    })
}

fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
