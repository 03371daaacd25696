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
    error::{shown, shown_below},
    meta::MetaBuf,
};

/// How large may be what stands before an entry: its long names and its pax
/// records, which hold at most 64 KiB of attributes.
const MAX_AHEAD: u64 = 256 * 1024;

/// How many headers may stand before an entry.
const MAX_HEADERS: u32 = 16;

/// How much behind the end of an archive is read to see its checksum: tar pads
/// what it writes.
const MAX_BEHIND: u64 = 1 << 20;

/// An entry of an archive.
pub(super) struct Entry {
    /// Its path from the top; empty for the top itself.
    pub(super) path: Vec<u8>,
    pub(super) kind: EntryKind,
    pub(super) meta: MetaBuf,
    pub(super) lost_xattrs: u64,
}

/// What an entry is.
pub(super) enum EntryKind {
    Directory,
    /// So many bytes of it follow.
    File {
        stored: u64,
        /// Where they go, if there are holes between them.
        sparse: Option<SparseMap>,
    },
    Symlink {
        target: Vec<u8>,
    },
    HardLink {
        to: Vec<u8>,
    },
    /// Something that is left out, and why.
    Other(&'static str),
}

/// The entries of an archive, one after the other.
pub(super) struct Entries<'a> {
    reader: Box<dyn Read + Send>,
    /// The name of the archive.
    archive: &'a Path,
    /// The name of the entry, as the archive has it.
    name: Vec<u8>,
    /// How many bytes of the entry are left, and how many pad them.
    left: u64,
    padding: u64,
    is_first: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn new(reader: Box<dyn Read + Send>, archive: &'a Path) -> Result<Self, TreeError> {
        let mut entries = Self {
            reader: Box::new(io::empty()),
            archive,
            name: Vec::new(),
            left: 0,
            padding: 0,
            is_first: true,
        };
        entries.reader = decompress(reader).map_err(|error| entries.unreadable(error))?;
        Ok(entries)
    }

    /// Goes on to the next entry. What was not read of the last one is skipped.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, TreeError> {
        let mut pax = Pax::default();
        let mut long_name = None;
        let mut long_link = None;
        let mut ahead = 0_u64;
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
            ahead = ahead.saturating_add(size);
            if ahead > MAX_AHEAD {
                return Err(self.problem(ArchiveProblem::TooMuchAhead));
            }
            self.set_size(size);
            let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
            self.read_exact(&mut bytes)?;
            match kind {
                b'L' => long_name = Some(up_to_zero(bytes)),
                b'K' => long_link = Some(up_to_zero(bytes)),
                // What is said of all entries is not about any of them.
                b'g' => {}
                _ => pax.add(&bytes).map_err(|problem| self.problem(problem))?,
            }
        }
        Err(self.problem(ArchiveProblem::TooMuchAhead))
    }

    /// Reads bytes of the entry; never none, unless all are read.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TreeError> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = buffer.len().min(most);
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
            shown_below(self.archive, b"")
        } else {
            shown(&self.name)
        };
        TreeError::Archive { entry, problem }
    }

    fn entry(
        &mut self,
        header: &Header<'_>,
        mut pax: Pax,
        (long_name, long_link): (Option<Vec<u8>>, Option<Vec<u8>>),
    ) -> Result<Entry, TreeError> {
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
            b'0' | 0 if is_directory => EntryKind::Directory,
            b'0' | b'7' | 0 => {
                self.set_size(size);
                self.file(&pax)?
            }
            b'S' => {
                let map = self.older_sparse_map(header, size)?;
                self.set_size(size);
                EntryKind::File {
                    stored: size,
                    sparse: Some(map),
                }
            }
            b'1' => EntryKind::HardLink {
                to: normal_path(&link).map_err(|_| self.problem(ArchiveProblem::BadLink))?,
            },
            b'2' => EntryKind::Symlink { target: link },
            b'3' => EntryKind::Other("it is a character device"),
            b'4' => EntryKind::Other("it is a block device"),
            b'5' => EntryKind::Directory,
            b'6' => EntryKind::Other("it is a named pipe"),
            b'V' => EntryKind::Other("it is the archive's label"),
            _ => return Err(self.problem(ArchiveProblem::Unsupported)),
        };
        // Whether bytes follow what is no file is a matter of opinion among
        // programs, which is how things are smuggled past one of them.
        if !matches!(kind, EntryKind::File { .. }) && size != 0 {
            return Err(self.problem(ArchiveProblem::BadNumber));
        }
        Ok(Entry {
            path,
            kind,
            meta,
            lost_xattrs: pax.lost_xattrs,
        })
    }

    /// A file, with the map that pax has in front of a sparse one.
    fn file(&mut self, pax: &Pax) -> Result<EntryKind, TreeError> {
        let sparse = match (pax.sparse_version, pax.is_older_sparse) {
            ((None, None), false) => None,
            ((Some(1), Some(0)), false) => {
                let parts = self.sparse_parts()?;
                let length = pax.sparse_size.unwrap_or(0);
                let map = SparseMap::new(parts, length, self.left);
                Some(map.map_err(|problem| self.problem(problem))?)
            }
            _ => return Err(self.problem(ArchiveProblem::Unsupported)),
        };
        Ok(EntryKind::File {
            stored: self.left,
            sparse,
        })
    }

    /// A number of parts, then offset and length of each, a line for each
    /// number, in whole blocks.
    fn sparse_parts(&mut self) -> Result<Parts, TreeError> {
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
                                return Err(self.problem(ArchiveProblem::TooMuchAhead));
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

    /// The map of GNU's older form, which continues in blocks of its own.
    fn older_sparse_map(
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
                return Err(self.problem(ArchiveProblem::TooMuchAhead));
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

    /// Reads what pads the archive, so that the decompressor sees its checksum.
    fn drain(&mut self) -> Result<(), TreeError> {
        let drained = io::copy(&mut (&mut self.reader).take(MAX_BEHIND), &mut io::sink());
        match drained {
            Ok(_) => Ok(()),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn unreadable(&self, error: io::Error) -> TreeError {
        if error.raw_os_error().is_some() {
            return TreeError::read(shown_below(self.archive, b""), error);
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

fn up_to_zero(mut bytes: Vec<u8>) -> Vec<u8> {
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
