use std::{
    borrow::Cow,
    io::{self, Read},
};

use tar::{EntryType, GnuExtSparseHeader, Header};

use crate::{
    ArchiveError, Device, Entry, EntryKind, SparseMap, Time,
    number::{signed, unsigned, until_nul},
    pax::Pax,
    sparse::{MAX_PARTS, add_gnu_parts},
};

/// The block size of archives.
pub const BLOCK: usize = 512;

/// The size limit for the extension headers before an entry: long names and pax
/// records. A path has at most 4 KiB, and Linux allows 64 KiB for an attribute.
const MAX_EXTENSION_BYTES: u64 = 256 * 1024;

/// The limit for the number of headers of an entry.
const MAX_HEADERS: u32 = 16;

/// Reads the entries of an uncompressed archive, one after the other.
#[derive(Debug)]
pub struct ArchiveReader<R> {
    reader: R,
    /// The header that was read last, of an entry or an extension.
    header: Header,
    /// The name of the current entry.
    name: Vec<u8>,
    /// The remaining bytes of the entry, and the padding after them.
    left: u64,
    padding: u64,
    is_first: bool,
    /// Whether an archive may end without a block of zeros.
    end_is_optional: bool,
    /// Whether there was a header of POSIX's pax format.
    has_pax: bool,
}

impl<R: Read> ArchiveReader<R> {
    /// Creates a reader. Reads nothing yet.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            header: Header::new_old(),
            name: Vec::new(),
            left: 0,
            padding: 0,
            is_first: true,
            end_is_optional: false,
            has_pax: false,
        }
    }

    /// Accepts an archive without the blocks of zeros at its end, and without what fills up the
    /// last file's, as some programs write them. One
    /// that was truncated between two entries looks the same: for archives that are compared
    /// with a digest.
    #[must_use]
    pub fn with_optional_end(mut self) -> Self {
        self.end_is_optional = true;
        self
    }

    /// Advances to the next entry. Skips the unread rest of the current one.
    /// Returns `None` at the block of zeros that ends an archive, and reads
    /// nothing behind it.
    ///
    /// # Errors
    /// [`ArchiveError`]. After an error, nothing more can be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, ArchiveError> {
        let mut pax = Pax::default();
        let (mut long_name, mut long_link) = (None, None);
        let mut extension_bytes = 0_u64;
        for _ in 0..MAX_HEADERS {
            self.skip_rest()?;
            if !self.read_header()? {
                return Ok(None);
            }
            if !is_extension(&self.header) {
                pax.path = pax.sparse_name.take().or(pax.path).or(long_name);
                pax.link_path = pax.link_path.or(long_link);
                return self.entry(pax).map(Some);
            }
            let size = unsigned(&self.header.as_old().size)?;
            extension_bytes = extension_bytes.saturating_add(size);
            if extension_bytes > MAX_EXTENSION_BYTES {
                return Err(ArchiveError::HeadersTooLarge);
            }
            self.set_size(size);
            let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
            self.read_exact(&mut bytes)?;
            match self.header.entry_type().as_byte() {
                b'L' => long_name = Some(until_nul(&bytes).to_vec()),
                b'K' => long_link = Some(until_nul(&bytes).to_vec()),
                // Global headers apply to all entries. They are ignored.
                b'g' => self.has_pax = true,
                // An access control list of Solaris. It is ignored.
                b'A' => {}
                _ => {
                    self.has_pax = true;
                    pax.add(&bytes)?;
                }
            }
        }
        Err(ArchiveError::HeadersTooLarge)
    }

    /// Returns the name of the current entry, as the archive states it. After
    /// an error in the headers before an entry, this is still the entry before.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the name in the last header, for errors: the name of the current
    /// entry, or that of an extension header before the next one.
    pub fn header_name(&self) -> Cow<'_, [u8]> {
        match is_extension(&self.header) {
            true => self.header.path_bytes(),
            false => Cow::Borrowed(&self.name),
        }
    }

    /// Returns the underlying reader, for example to read what follows the
    /// archive.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Reads bytes of the current entry. Returns 0 only at its end.
    ///
    /// # Errors
    /// [`ArchiveError::Truncated`] and [`ArchiveError::Io`].
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ArchiveError> {
        let max = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = buffer.len().min(max);
        let Some(buffer) = buffer.get_mut(..length).filter(|buffer| !buffer.is_empty()) else {
            return Ok(0);
        };
        loop {
            match self.reader.read(buffer) {
                Ok(0) => return Err(ArchiveError::Truncated),
                Ok(count) => {
                    self.left = self.left.saturating_sub(count as u64);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Fills a buffer with bytes of the current entry.
    ///
    /// # Errors
    /// [`ArchiveError::BadNumber`] if the entry has fewer bytes; otherwise as
    /// [`read`](Self::read).
    pub fn read_exact(&mut self, mut buffer: &mut [u8]) -> Result<(), ArchiveError> {
        while !buffer.is_empty() {
            match self.read(buffer)? {
                0 => return Err(ArchiveError::BadNumber),
                count => buffer = buffer.get_mut(count..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    fn skip_rest(&mut self) -> Result<(), ArchiveError> {
        let count = self.left.saturating_add(self.padding);
        let skipped = io::copy(&mut (&mut self.reader).take(count), &mut io::sink())?;
        // Writers that do not end an archive do not fill up its last block either.
        let least = match self.end_is_optional {
            true => self.left,
            false => count,
        };
        if skipped < least {
            return Err(ArchiveError::Truncated);
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// Reads a header. Returns false for a block of zeros.
    fn read_header(&mut self) -> Result<bool, ArchiveError> {
        let mut block = (&mut self.reader).take(BLOCK as u64);
        let length = io::copy(&mut block, &mut self.header.as_mut_bytes().as_mut_slice())?;
        match length {
            0 if self.end_is_optional => return Ok(false),
            length if length < BLOCK as u64 => return Err(ArchiveError::Truncated),
            _ => {}
        }
        if self.header.as_bytes() == &[0; BLOCK] {
            return Ok(false);
        }
        if !has_valid_checksum(&self.header) {
            return Err(match self.is_first {
                true => ArchiveError::NotAnArchive,
                false => ArchiveError::Damaged,
            });
        }
        self.is_first = false;
        // The crate `tar` ignores the second part of a name if the version is
        // another one; GNU tar does not.
        let bytes = self.header.as_mut_bytes();
        if &bytes[257..263] == b"ustar\0" {
            bytes[263..265].copy_from_slice(b"00");
        }
        Ok(true)
    }

    /// Reads the entry whose header was read last.
    fn entry(&mut self, mut pax: Pax) -> Result<Entry, ArchiveError> {
        let header = self.header.clone();
        let fields = header.as_old();
        let name = pax.path.take();
        self.name = name.unwrap_or_else(|| header.path_bytes().into_owned());
        let or_field = |value, field| match value {
            Some(value) => Ok(value),
            None => unsigned(field),
        };
        let modified = match pax.modified {
            Some(modified) => modified,
            None => Time {
                seconds: signed(&fields.mtime)?,
                nanoseconds: 0,
            },
        };
        let size = match pax.size {
            Some(size) => size,
            None => unsigned(&fields.size)?,
        };
        Ok(Entry {
            // Some writers also store the file type bits. The mask leaves the
            // twelve permission bits, which fit.
            mode: (signed(&fields.mode)? & 0o7777) as u16,
            uid: or_field(pax.uid, &fields.uid)?,
            gid: or_field(pax.gid, &fields.gid)?,
            modified,
            kind: self.kind(&header, &mut pax, size)?,
            xattrs: pax.xattrs,
        })
    }

    fn kind(
        &mut self,
        header: &Header,
        pax: &mut Pax,
        size: u64,
    ) -> Result<EntryKind, ArchiveError> {
        let link_path = pax.link_path.take();
        let target = || link_path.unwrap_or_else(|| until_nul(&header.as_old().linkname).to_vec());
        let kind = match header.entry_type() {
            // Before POSIX, directories had no type of their own.
            EntryType::Regular if self.name.ends_with(b"/") => EntryKind::Directory,
            EntryType::Regular | EntryType::Continuous => {
                self.set_size(size);
                let sparse = self.pax_sparse_map(pax)?;
                let stored = self.left;
                return Ok(EntryKind::File { stored, sparse });
            }
            EntryType::GNUSparse => {
                let sparse = Some(self.gnu_sparse_map(header, size)?);
                self.set_size(size);
                let stored = size;
                return Ok(EntryKind::File { stored, sparse });
            }
            // In archives of POSIX's pax format, bytes may follow a hard link.
            // Programs differ in whether they expect them, and attackers use
            // that to hide entries from one of them.
            EntryType::Link if size > 0 && self.has_pax && header.as_ustar().is_some() => {
                return Err(ArchiveError::BadNumber);
            }
            EntryType::Link => EntryKind::HardLink { target: target() },
            EntryType::Symlink => EntryKind::Symlink { target: target() },
            EntryType::Char => EntryKind::CharacterDevice(device(header)),
            EntryType::Block => EntryKind::BlockDevice(device(header)),
            EntryType::Directory => EntryKind::Directory,
            EntryType::Fifo => EntryKind::Fifo,
            other => match other.as_byte() {
                b'V' if size > 0 => return Err(ArchiveError::BadNumber),
                b'V' => EntryKind::Label,
                // GNU's incremental archives store the names in a directory.
                b'D' => {
                    self.set_size(size);
                    EntryKind::Directory
                }
                other => {
                    self.set_size(size);
                    EntryKind::Unknown(other)
                }
            },
        };
        // Nothing follows other entries, whatever their headers state: old
        // programs stored the size that the file system reported.
        Ok(kind)
    }

    /// Returns the map of a sparse file of one of GNU's three formats with pax
    /// records. In formats 0.0 and 0.1 the records contain it, and in format 1.0
    /// it is stored at the start of the data.
    fn pax_sparse_map(&mut self, pax: &mut Pax) -> Result<Option<SparseMap>, ArchiveError> {
        let recorded = (pax.sparse_parts.take(), pax.sparse_size);
        let (parts, length) = match (pax.sparse_version, recorded) {
            _ if pax.has_unknown_sparse_record => return Err(ArchiveError::UnsupportedSparse),
            ((None, None), (None, None)) => return Ok(None),
            ((None, None) | (Some(0), Some(0 | 1)), (Some(parts), Some(length))) => (parts, length),
            ((Some(1), Some(0)), (None, length)) => (self.pax_sparse_parts()?, length.unwrap_or(0)),
            _ => return Err(ArchiveError::UnsupportedSparse),
        };
        SparseMap::new(parts, length, self.left).map(Some)
    }

    /// Reads the map in the data: the number of parts, then offset and length of each: one number per
    /// line, padded to whole blocks.
    fn pax_sparse_parts(&mut self) -> Result<Vec<(u64, u64)>, ArchiveError> {
        let mut block = [0; BLOCK];
        let mut at = BLOCK;
        let mut next_number = || {
            let mut number: Option<u64> = None;
            loop {
                if at == BLOCK {
                    self.read_exact(&mut block)?;
                    at = 0;
                }
                let byte = block[at];
                at += 1;
                number = match (byte, number) {
                    (b'\n', Some(number)) => return Ok(number),
                    (b'0'..=b'9', so_far) => {
                        let tens = so_far.unwrap_or(0).checked_mul(10);
                        tens.and_then(|tens| tens.checked_add((byte - b'0').into()))
                    }
                    _ => None,
                };
                if number.is_none() {
                    return Err(ArchiveError::BadNumber);
                }
            }
        };
        let count = next_number()?;
        if count > MAX_PARTS {
            return Err(ArchiveError::HeadersTooLarge);
        }
        (0..count)
            .map(|_| Ok((next_number()?, next_number()?)))
            .collect()
    }

    /// Reads the map in GNU's old format, which starts in the header and
    /// continues in additional blocks.
    fn gnu_sparse_map(&mut self, header: &Header, stored: u64) -> Result<SparseMap, ArchiveError> {
        let gnu = header.as_gnu().filter(|gnu| gnu.realsize[0] != 0);
        let gnu = gnu.ok_or(ArchiveError::UnsupportedSparse)?;
        let mut parts = Vec::new();
        add_gnu_parts(&mut parts, &gnu.sparse)?;
        let mut is_continued = gnu.isextended != [0];
        while is_continued {
            let mut block = GnuExtSparseHeader::new();
            self.reader.read_exact(block.as_mut_bytes())?;
            let count = parts.len();
            add_gnu_parts(&mut parts, block.sparse())?;
            if parts.len() == count || parts.len() as u64 > MAX_PARTS {
                return Err(ArchiveError::HeadersTooLarge);
            }
            is_continued = block.isextended != [0];
        }
        SparseMap::new(parts, unsigned(&gnu.realsize)?, stored)
    }

    fn set_size(&mut self, size: u64) {
        self.left = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }
}

/// Returns whether a header belongs to the next entry. `X` is Solaris's name of
/// `x`, and `A` its access control list.
fn is_extension(header: &Header) -> bool {
    matches!(
        header.entry_type().as_byte(),
        b'L' | b'K' | b'x' | b'X' | b'g' | b'A'
    )
}

/// Returns whether the checksum of a header is right. It is the sum of all
/// bytes, with spaces in its own field; some old programs added signed bytes.
fn has_valid_checksum(header: &Header) -> bool {
    let mut spaced = header.clone();
    spaced.as_old_mut().cksum = [b' '; 8];
    let bytes = spaced.as_bytes().iter();
    let unsigned: i64 = bytes.clone().map(|byte| i64::from(*byte)).sum();
    let signed: i64 = bytes.map(|byte| i64::from(byte.cast_signed())).sum();
    header
        .cksum()
        .is_ok_and(|stated| [unsigned, signed].contains(&stated.into()))
}

fn device(header: &Header) -> Option<Device> {
    Some(Device {
        major: header.device_major().ok()??,
        minor: header.device_minor().ok()??,
    })
}
