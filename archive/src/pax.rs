//! Extended header records of POSIX's pax format, for values that do not fit
//! into the fields of a header.
//!
//! ```text
//! 30 mtime=1350244992.023960108\n      the length counts the whole record
//! ```

use crate::{ArchiveError, Time, number::decimal};

const XATTR_PREFIX: &str = "SCHILY.xattr.";

/// The records before an entry, which take precedence over its header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pax {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) link_path: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) modified: Option<Time>,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The name of a sparse file; the path is that of a stand-in.
    pub(crate) sparse_name: Option<Vec<u8>>,
    /// The length of a sparse file, including holes.
    pub(crate) sparse_size: Option<u64>,
    pub(crate) sparse_version: (Option<u64>, Option<u64>),
    /// Offsets and lengths of its data, in the formats 0.0 and 0.1.
    pub(crate) sparse_parts: Option<Vec<(u64, u64)>>,
    /// The offset of the next part, in format 0.0.
    sparse_offset: Option<u64>,
    pub(crate) has_unknown_sparse_record: bool,
}

impl Pax {
    /// Parses records. A value may contain any bytes, including newlines.
    pub(crate) fn add(&mut self, mut records: &[u8]) -> Result<(), ArchiveError> {
        while !records.is_empty() {
            let (key, value, rest) = split_record(records).ok_or(ArchiveError::BadRecord)?;
            self.set(key, value)?;
            records = rest;
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), ArchiveError> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link_path = Some(value.to_vec()),
            b"size" => self.size = Some(decimal(value)?),
            b"uid" => self.uid = Some(decimal(value)?),
            b"gid" => self.gid = Some(decimal(value)?),
            b"mtime" => self.modified = Some(parse_time(value)?),
            b"GNU.sparse.major" => self.sparse_version.0 = Some(decimal(value)?),
            b"GNU.sparse.minor" => self.sparse_version.1 = Some(decimal(value)?),
            b"GNU.sparse.name" => self.sparse_name = Some(value.to_vec()),
            b"GNU.sparse.realsize" | b"GNU.sparse.size" => {
                self.sparse_size = Some(decimal(value)?);
            }
            b"GNU.sparse.map" => self.sparse_parts = Some(parse_sparse_map(value)?),
            b"GNU.sparse.offset" => self.sparse_offset = Some(decimal(value)?),
            b"GNU.sparse.numbytes" => {
                let offset = self.sparse_offset.take().ok_or(ArchiveError::BadNumber)?;
                let parts = self.sparse_parts.get_or_insert_default();
                parts.push((offset, decimal(value)?));
            }
            // The parts are counted as they come.
            b"GNU.sparse.numblocks" => {}
            _ if key.starts_with(b"GNU.sparse.") => self.has_unknown_sparse_record = true,
            _ => {
                if let Some(name) = key.strip_prefix(XATTR_PREFIX.as_bytes()) {
                    self.xattrs.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }
}

fn split_record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blank = records.iter().position(|byte| *byte == b' ')?;
    let (length, _) = records.split_at_checked(blank)?;
    let (record, rest) = records.split_at_checked(decimal(length).ok()?)?;
    let record = record.get(blank.checked_add(1)?..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    let (key, value) = record.split_at_checked(equals)?;
    Some((key, value.get(1..)?, rest))
}

/// Parses offsets and lengths in turn, separated by commas.
fn parse_sparse_map(value: &[u8]) -> Result<Vec<(u64, u64)>, ArchiveError> {
    let mut numbers = value.split(|byte| *byte == b',').map(decimal);
    let mut parts = Vec::new();
    while let Some(offset) = numbers.next() {
        let length = numbers.next().ok_or(ArchiveError::BadNumber)?;
        parts.push((offset?, length?));
    }
    Ok(parts)
}

/// Parses seconds with a fraction of any length.
fn parse_time(value: &[u8]) -> Result<Time, ArchiveError> {
    let mut halves = value.splitn(2, |byte| *byte == b'.');
    let whole = halves.next().unwrap_or_default();
    let fraction = halves.next().unwrap_or_default();
    let seconds: i64 = decimal(whole)?;
    if !fraction.iter().all(u8::is_ascii_digit) {
        return Err(ArchiveError::BadNumber);
    }
    let digits = fraction.iter().chain(std::iter::repeat(&b'0')).take(9);
    let nanoseconds = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    if nanoseconds == 0 || !whole.starts_with(b"-") {
        return Ok(Time {
            seconds,
            nanoseconds,
        });
    }
    Ok(Time {
        seconds: seconds.checked_sub(1).ok_or(ArchiveError::BadNumber)?,
        nanoseconds: 1_000_000_000 - nanoseconds,
    })
}

/// Pax records to be written.
#[derive(Debug, Default)]
pub struct PaxBuf(Vec<u8>);

impl PaxBuf {
    /// Adds a record.
    pub fn put(&mut self, key: &str, value: &[u8]) {
        let rest = key.len() + value.len() + 3;
        // The length includes its own digits.
        let mut length = rest;
        while length != rest + length.to_string().len() {
            length = rest + length.to_string().len();
        }
        self.0
            .extend_from_slice(format!("{length} {key}=").as_bytes());
        self.0.extend_from_slice(value);
        self.0.push(b'\n');
    }

    /// Adds a number.
    pub fn put_number(&mut self, key: &str, number: u64) {
        self.put(key, number.to_string().as_bytes());
    }

    /// Adds a time, of which the nanoseconds count forward, as in a [`Time`].
    pub fn put_time(&mut self, key: &str, seconds: i64, nanoseconds: u32) {
        let text = match (seconds, nanoseconds) {
            (seconds, 0) => seconds.to_string(),
            (seconds @ 0.., nanoseconds) => format!("{seconds}.{nanoseconds:09}"),
            // Before 1970 the fraction counts away from zero.
            (seconds, nanoseconds) => {
                let whole = seconds.saturating_add(1).unsigned_abs();
                format!("-{whole}.{:09}", 1_000_000_000 - nanoseconds)
            }
        };
        self.put(key, text.as_bytes());
    }

    /// Adds an extended attribute. Returns whether a record can contain its
    /// name, which must be UTF-8 without `=`.
    #[must_use]
    pub fn put_xattr(&mut self, name: &[u8], value: &[u8]) -> bool {
        match std::str::from_utf8(name) {
            Ok(name) if !name.contains('=') => {
                self.put(&format!("{XATTR_PREFIX}{name}"), value);
                true
            }
            _ => false,
        }
    }

    /// Returns the records.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_apart_by_their_lengths() {
        let mut pax = Pax::default();
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
        pax.add(&records).unwrap();
        let modified = Time {
            seconds: 1_350_244_992,
            nanoseconds: 23_960_108,
        };
        assert_eq!(
            pax,
            Pax {
                path: Some(b"a\nb=c".to_vec()),
                uid: Some(3_000_000),
                modified: Some(modified),
                xattrs: vec![(b"security.capability".to_vec(), value.to_vec())],
                ..Pax::default()
            }
        );
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let refused: [&[u8]; 8] = [
            b"x",
            b"5 a=b",
            b"99 a=b\n",
            b"0 a=b\n",
            b"2 a=b\n",
            b"-6 a=b\n",
            b"18446744073709551615 a=b\n",
            b"6 abc\n",
        ];
        for records in refused {
            let error = Pax::default().add(records).unwrap_err();
            assert!(matches!(error, ArchiveError::BadRecord), "{records:?}");
        }
        let error = Pax::default().add(b"8 uid=x\n").unwrap_err();
        assert!(matches!(error, ArchiveError::BadNumber));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>) {
            let _ = Pax::default().add(&bytes);
        }

        #[test]
        fn what_is_written_is_read(
            path: Vec<u8>,
            name in "[^=]*",
            value: Vec<u8>,
            seconds in i64::MIN + 1..,
            nanoseconds in 0..1_000_000_000_u32,
        ) {
            let modified = Time { seconds, nanoseconds };
            let mut records = PaxBuf::default();
            records.put("path", &path);
            records.put_time("mtime", seconds, nanoseconds);
            proptest::prop_assert!(records.put_xattr(name.as_bytes(), &value));
            let mut pax = Pax::default();
            pax.add(records.as_bytes()).unwrap();
            proptest::prop_assert_eq!(pax, Pax {
                path: Some(path),
                modified: Some(modified),
                xattrs: vec![(name.into_bytes(), value)],
                ..Pax::default()
            });
        }
    }
}
