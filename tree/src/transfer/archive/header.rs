//! The header block of an entry: tar(5).
//!
//! ```text
//! byte  0     100   108  116  124   136    148    156   157       257
//!       name  mode  uid  gid  size  mtime  check  type  linkname  magic ...
//! ```

use super::{ArchiveProblem, sparse::Parts};

/// The block size of archives.
pub(super) const BLOCK: usize = 512;

/// The largest number in a field of 12 bytes: 11 octal digits.
const MAX_SIZE: u64 = 0o77_777_777_777;

/// The largest number in a field of 8 bytes: 7 octal digits.
const MAX_ID: u32 = 0o7_777_777;

/// A header of an archive that is read.
pub(super) struct Header<'a>(&'a [u8; BLOCK]);

impl<'a> Header<'a> {
    /// Checks a block. Returns `None` for a block of zeros, which ends an
    /// archive.
    pub(super) fn read(block: &'a [u8; BLOCK]) -> Result<Option<Self>, ArchiveProblem> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let header = Self(block);
        let stated = header.number(148, 8).map_err(|_| ArchiveProblem::Damaged)?;
        if stated != i64::from(checksum(block)) {
            return Err(ArchiveProblem::Damaged);
        }
        Ok(Some(header))
    }

    pub(super) fn kind(&self) -> u8 {
        self.field(156, 1).first().copied().unwrap_or(0)
    }

    /// Returns the name. POSIX splits a long one in two fields.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = self.text(0, 100);
        let prefix = self.text(345, 155);
        if self.is_posix() && !prefix.is_empty() {
            return [prefix, b"/", name].concat();
        }
        name.to_vec()
    }

    pub(super) fn link_name(&self) -> &'a [u8] {
        self.text(157, 100)
    }

    pub(super) fn mode(&self) -> Result<u16, ArchiveProblem> {
        // Some writers also store the file type bits.
        u16::try_from(self.number(100, 8)? & 0o7777).map_err(|_| ArchiveProblem::BadNumber)
    }

    pub(super) fn uid(&self) -> Result<u32, ArchiveProblem> {
        u32::try_from(self.number(108, 8)?).map_err(|_| ArchiveProblem::BadNumber)
    }

    pub(super) fn gid(&self) -> Result<u32, ArchiveProblem> {
        u32::try_from(self.number(116, 8)?).map_err(|_| ArchiveProblem::BadNumber)
    }

    pub(super) fn size(&self) -> Result<u64, ArchiveProblem> {
        self.unsigned(124, 12)
    }

    pub(super) fn modified(&self) -> Result<i64, ArchiveProblem> {
        self.number(136, 12)
    }

    /// Returns the map of a sparse file in GNU's old format: offset and length
    /// of up to four parts, whether blocks with more parts follow, and the
    /// length of the file.
    pub(super) fn sparse(&self) -> Result<(Parts, bool, u64), ArchiveProblem> {
        let is_continued = self.field(482, 1) != [0];
        Ok((
            parts(self.field(386, 96))?,
            is_continued,
            self.unsigned(483, 12)?,
        ))
    }

    fn is_posix(&self) -> bool {
        self.field(257, 6) == b"ustar\0"
    }

    fn unsigned(&self, offset: usize, length: usize) -> Result<u64, ArchiveProblem> {
        u64::try_from(self.number(offset, length)?).map_err(|_| ArchiveProblem::BadNumber)
    }

    fn number(&self, offset: usize, length: usize) -> Result<i64, ArchiveProblem> {
        number(self.field(offset, length))
    }

    fn text(&self, offset: usize, length: usize) -> &'a [u8] {
        let field = self.field(offset, length);
        field.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn field(&self, offset: usize, length: usize) -> &'a [u8] {
        self.0.get(offset..offset + length).unwrap_or_default()
    }
}

/// Returns the parts of a sparse file in a block that continues the header, and
/// whether another one follows.
pub(super) fn more_parts(block: &[u8; BLOCK]) -> Result<(Parts, bool), ArchiveProblem> {
    let (list, rest) = block.split_at(21 * 24);
    Ok((parts(list)?, rest.first() != Some(&0)))
}

fn parts(list: &[u8]) -> Result<Parts, ArchiveProblem> {
    let mut parts = Vec::new();
    for part in list.chunks_exact(24) {
        let (offset, length) = part.split_at(12);
        if offset.first() == Some(&0) {
            break;
        }
        let unsigned = |field| u64::try_from(number(field)?).map_err(|_| ArchiveProblem::BadNumber);
        parts.push((unsigned(offset)?, unsigned(length)?));
    }
    Ok(parts)
}

/// Parses octal digits among spaces, or GNU's binary numbers, which start with
/// a byte above 127.
fn number(field: &[u8]) -> Result<i64, ArchiveProblem> {
    let Some((first, rest)) = field.split_first() else {
        return Ok(0);
    };
    let overflow = ArchiveProblem::BadNumber;
    if first & 0x80 != 0 {
        let start = if *first == 0xff {
            -1
        } else {
            i64::from(first & 0x7f)
        };
        return rest.iter().try_fold(start, |number, byte| {
            number
                .checked_mul(256)
                .and_then(|number| number.checked_add(i64::from(*byte)))
                .ok_or(overflow)
        });
    }
    let digits = field.split(|byte| *byte == 0).next().unwrap_or_default();
    digits
        .trim_ascii()
        .iter()
        .try_fold(0_i64, |number, digit| match digit {
            b'0'..=b'7' => number
                .checked_mul(8)
                .and_then(|number| number.checked_add(i64::from(digit - b'0')))
                .ok_or(overflow),
            _ => Err(overflow),
        })
}

fn checksum(block: &[u8; BLOCK]) -> u32 {
    let (before, rest) = block.split_at(148);
    let (_, after) = rest.split_at(8);
    let bytes = before.iter().chain(&[b' '; 8]).chain(after);
    bytes.map(|byte| u32::from(*byte)).sum()
}

/// A header to be written. Setters return whether the value fits into its
/// field; if not, the caller writes a pax record.
pub(super) struct HeaderBuf([u8; BLOCK]);

impl HeaderBuf {
    pub(super) fn new(kind: u8) -> Self {
        let mut header = Self([0; BLOCK]);
        header.put(156, &[kind]);
        header.put(257, b"ustar\x0000");
        header
    }

    pub(super) fn set_name(&mut self, name: &[u8]) -> bool {
        self.text(0, name)
    }

    pub(super) fn set_link_name(&mut self, name: &[u8]) -> bool {
        self.text(157, name)
    }

    pub(super) fn set_mode(&mut self, mode: u16) {
        self.octal(100, 8, mode.into());
    }

    pub(super) fn set_owner(&mut self, uid: u32, gid: u32) -> bool {
        let fits = uid <= MAX_ID && gid <= MAX_ID;
        self.octal(108, 8, uid.min(MAX_ID).into());
        self.octal(116, 8, gid.min(MAX_ID).into());
        fits
    }

    pub(super) fn set_size(&mut self, size: u64) -> bool {
        self.octal(124, 12, size.min(MAX_SIZE));
        size <= MAX_SIZE
    }

    pub(super) fn set_modified(&mut self, seconds: i64) -> bool {
        let fitting = u64::try_from(seconds).unwrap_or(0).min(MAX_SIZE);
        self.octal(136, 12, fitting);
        i64::try_from(fitting) == Ok(seconds)
    }

    /// Returns the block with its checksum.
    pub(super) fn finish(mut self) -> [u8; BLOCK] {
        let sum = checksum(&self.0);
        self.octal(148, 7, sum.into());
        self.put(155, b" ");
        self.0
    }

    fn text(&mut self, offset: usize, text: &[u8]) -> bool {
        self.put(offset, text.get(..100).unwrap_or(text));
        text.len() <= 100
    }

    fn octal(&mut self, offset: usize, length: usize, number: u64) {
        let digits = format!("{number:0width$o}\0", width = length - 1);
        self.put(offset, digits.as_bytes());
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        if let Some(field) = self.0.get_mut(offset..offset + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }
}
