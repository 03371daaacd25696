//! Extended header records of POSIX's pax format, for values that do not fit
//! into the fields of a header.
//!
//! ```text
//! 30 mtime=1350244992.023960108\n      the length counts the whole record
//! ```

use vmcell_wire::files::{Metadata, Time, XattrsBuf};

use super::ArchiveProblem;

const XATTR_PREFIX: &str = "SCHILY.xattr.";

/// The records before an entry, which take precedence over its header.
#[derive(Debug, Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link_path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) modified: Option<Time>,
    pub(super) xattrs: XattrsBuf,
    /// The number of attributes that did not fit.
    pub(super) lost_xattrs: u64,
    /// The length of a sparse file, including holes.
    pub(super) sparse_size: Option<u64>,
    pub(super) sparse_version: (Option<u64>, Option<u64>),
    pub(super) is_old_sparse: bool,
}

impl Pax {
    /// Parses records. A value may contain any bytes, including newlines.
    pub(super) fn add(&mut self, mut records: &[u8]) -> Result<(), ArchiveProblem> {
        while !records.is_empty() {
            let (key, value, rest) = split_record(records).ok_or(ArchiveProblem::Damaged)?;
            self.set(key, value)?;
            records = rest;
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), ArchiveProblem> {
        match key {
            b"path" | b"GNU.sparse.name" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link_path = Some(value.to_vec()),
            b"size" => self.size = Some(parse(value)?),
            b"uid" => self.uid = Some(parse(value)?),
            b"gid" => self.gid = Some(parse(value)?),
            b"mtime" => self.modified = Some(parse_time(value)?),
            b"GNU.sparse.major" => self.sparse_version.0 = Some(parse(value)?),
            b"GNU.sparse.minor" => self.sparse_version.1 = Some(parse(value)?),
            b"GNU.sparse.realsize" => self.sparse_size = Some(parse(value)?),
            _ if key.starts_with(b"GNU.sparse.") => self.is_old_sparse = true,
            _ => {
                if let Some(name) = key.strip_prefix(XATTR_PREFIX.as_bytes())
                    && name.starts_with(b"user.")
                {
                    self.lost_xattrs += u64::from(!self.xattrs.push(name, value));
                }
            }
        }
        Ok(())
    }
}

fn split_record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blank = records.iter().position(|byte| *byte == b' ')?;
    let (length, _) = records.split_at_checked(blank)?;
    let length: usize = parse(length).ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    let record = record.get(blank.checked_add(1)?..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    let (key, value) = record.split_at_checked(equals)?;
    Some((key, value.get(1..)?, rest))
}

fn parse<T: std::str::FromStr>(value: &[u8]) -> Result<T, ArchiveProblem> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(ArchiveProblem::BadNumber)
}

/// Parses seconds with a fraction of any length. In a [`Time`], nanoseconds
/// always count forward, also before 1970.
fn parse_time(value: &[u8]) -> Result<Time, ArchiveProblem> {
    let mut halves = value.splitn(2, |byte| *byte == b'.');
    let whole = halves.next().unwrap_or_default();
    let fraction = halves.next().unwrap_or_default();
    let seconds: i64 = parse(whole)?;
    if !fraction.iter().all(u8::is_ascii_digit) {
        return Err(ArchiveProblem::BadNumber);
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
        seconds: seconds.checked_sub(1).ok_or(ArchiveProblem::BadNumber)?,
        nanoseconds: 1_000_000_000 - nanoseconds,
    })
}

/// Pax records to be written.
#[derive(Debug, Default)]
pub(super) struct PaxBuf(Vec<u8>);

impl PaxBuf {
    pub(super) fn put(&mut self, key: &str, value: &[u8]) {
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

    pub(super) fn put_number(&mut self, key: &str, number: u64) {
        self.put(key, number.to_string().as_bytes());
    }

    pub(super) fn put_time(&mut self, key: &str, time: Time) {
        let text = match (time.seconds, time.nanoseconds) {
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

    /// Adds the `user.*` attributes whose names are UTF-8 without `=`. Returns
    /// the number of the others.
    pub(super) fn put_xattrs(&mut self, meta: &Metadata<'_>) -> u64 {
        let mut lost = 0;
        for (name, value) in meta.xattrs.iter() {
            match std::str::from_utf8(name) {
                Ok(name) if name.starts_with("user.") && !name.contains('=') => {
                    self.put(&format!("{XATTR_PREFIX}{name}"), value);
                }
                _ => lost += 1,
            }
        }
        lost
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
