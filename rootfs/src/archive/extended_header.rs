//! Extended headers: entries that precede another entry and hold what its header has no room for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;

use tar::{Entry, EntryType};

use super::{to_path, unreadable};
use crate::scan::is_portable;
use crate::{ArchiveProblem, Error};

/// Limit on the size of one extended header: a path has at most 4 KiB, and Linux allows 64 KiB
/// for an attribute's value.
const MAX_HEADER_BYTES: u64 = 256 << 10;

/// The fields from the extended headers before an entry, which override those of its own header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExtendedHeader {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) xattrs: BTreeMap<OsString, Vec<u8>>,
}

impl ExtendedHeader {
    /// Reads `piece` if it is an extended header. Returns whether it was one.
    pub(super) fn read<R: Read>(&mut self, piece: &mut Entry<'_, R>) -> Result<bool, Error> {
        match piece.header().entry_type() {
            EntryType::GNULongName => self.path = Some(strip_nul(read_bounded(piece)?)),
            EntryType::GNULongLink => self.link = Some(strip_nul(read_bounded(piece)?)),
            EntryType::XHeader => {
                let records = read_bounded(piece)?;
                self.parse_records(&records)
                    .map_err(|problem| Error::Archive {
                        path: to_path(&piece.path_bytes()),
                        problem,
                    })?;
            }
            // Defaults for all entries; none of them matters to an image.
            EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses the records of a pax header, see pax(1): `length key=value` and a line break, where
    /// the length counts the whole record.
    fn parse_records(&mut self, mut rest: &[u8]) -> Result<(), ArchiveProblem> {
        while !rest.is_empty() {
            let (record, after) = split_record(rest).ok_or(ArchiveProblem::BadNumber)?;
            let (key, value) = split_at(record, b'=').ok_or(ArchiveProblem::BadNumber)?;
            self.set_record(key, value)?;
            rest = after;
        }
        Ok(())
    }

    fn set_record(&mut self, key: &[u8], value: &[u8]) -> Result<(), ArchiveProblem> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"uid" => self.uid = Some(parse_number(value).ok_or(ArchiveProblem::BadNumber)?),
            b"gid" => self.gid = Some(parse_number(value).ok_or(ArchiveProblem::BadNumber)?),
            b"size" => return Err(ArchiveProblem::Sparse),
            _ if key.starts_with(b"GNU.sparse.") => return Err(ArchiveProblem::Sparse),
            _ => {
                let attribute = key.strip_prefix(b"SCHILY.xattr.");
                if let Some(name) = attribute.filter(|name| is_portable(name)) {
                    let name = OsStr::from_bytes(name).to_owned();
                    self.xattrs.insert(name, value.to_vec());
                }
            }
        }
        Ok(())
    }
}

fn read_bounded<R: Read>(piece: &mut Entry<'_, R>) -> Result<Vec<u8>, Error> {
    let size = piece.size();
    if size > MAX_HEADER_BYTES {
        return Err(Error::Archive {
            path: to_path(&piece.path_bytes()),
            problem: ArchiveProblem::TooLong,
        });
    }
    let mut bytes = Vec::new();
    piece.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 != size {
        return Err(unreadable(std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

/// Removes the NUL that ends a GNU long name.
fn strip_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

/// Returns the first record, without its length and line break, and the bytes after it.
fn split_record(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (digits, _) = split_at(rest, b' ')?;
    let length = usize::try_from(parse_number(digits)?).ok()?;
    let (record, after) = rest.split_at_checked(length)?;
    let record = record.get(digits.len() + 1..)?.strip_suffix(b"\n")?;
    Some((record, after))
}

fn split_at(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let middle = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..middle], &bytes[middle + 1..]))
}

fn parse_number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_apart_by_their_lengths() {
        let mut extended = ExtendedHeader::default();
        let value = b"\x01\n=\0 9 uid=7\n";
        let record = [b"SCHILY.xattr.security.capability=", &value[..]].concat();
        let records = [
            &b"14 path=a\nb=c\n"[..],
            format!("{} ", record.len() + 4).as_bytes(),
            &record,
            b"\n",
            b"15 uid=3000000\n",
            b"30 mtime=1350244992.023960108\n",
        ]
        .concat();
        extended.parse_records(&records).unwrap();
        assert_eq!(extended.path.as_deref(), Some(&b"a\nb=c"[..]));
        assert_eq!(extended.uid, Some(3_000_000));
        let name = OsString::from("security.capability");
        assert_eq!(extended.xattrs, BTreeMap::from([(name, value.to_vec())]));
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let refused: [&[u8]; 9] = [
            b"x",
            b"5 a=b",
            b"99 a=b\n",
            b"0 a=b\n",
            b"2 a=b\n",
            b"-6 a=b\n",
            b"18446744073709551615 a=b\n",
            b"6 abc\n",
            b"8 uid=x\n",
        ];
        for records in refused {
            let problem = ExtendedHeader::default()
                .parse_records(records)
                .unwrap_err();
            assert_eq!(problem, ArchiveProblem::BadNumber, "{records:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>) {
            let _ = ExtendedHeader::default().parse_records(&bytes);
        }
    }
}
