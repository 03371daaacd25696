//! The packed form of a file:
//!
//! ```text
//!  run  = offset: u64, length: u32, bytes     one for each run, in order
//!  end  = size of the file: u64, 0: u32
//! ```
//!
//! Numbers are little-endian.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::FileExt as _,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use super::runs::{BLOCK, for_each_run};

/// The SHA-256 of a file's packed form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

/// Returns the digest of a file.
pub(crate) fn digest(file: &File) -> io::Result<Digest> {
    pack(file, io::sink())
}

/// Writes the packed form of a file. Returns its digest.
pub(crate) fn pack(file: &File, to: impl Write) -> io::Result<Digest> {
    let mut to = Hashing::new(to);
    let size = for_each_run(file, |offset, run| {
        to.write_header(offset, run.len())?;
        to.write_all(run)
    })?;
    to.write_header(size, 0)?;
    Ok(to.finish())
}

/// Copies a file into an empty one, which is a hole wherever this one is zero. Returns
/// its digest.
pub(crate) fn copy_with_digest(from: &File, to: &File) -> io::Result<Digest> {
    let mut hashing = Hashing::new(io::sink());
    let size = for_each_run(from, |offset, run| {
        to.write_all_at(run, offset)?;
        hashing.write_header(offset, run.len())?;
        hashing.write_all(run)
    })?;
    to.set_len(size)?;
    hashing.write_header(size, 0)?;
    Ok(hashing.finish())
}

/// Writes the file with this packed form into an empty one. Returns its digest. A form
/// that is cut short, or that does not describe a file of this size, is an error; what
/// follows it is ignored.
pub(crate) fn unpack(from: impl Read, to: &File, size: u64) -> io::Result<Digest> {
    let mut from = Hashing::new(from);
    let mut block = vec![0; BLOCK];
    let mut end = 0;
    loop {
        let (offset, length) = from.read_header()?;
        if length == 0 {
            if offset != size || end > size {
                return Err(malformed());
            }
            to.set_len(size)?;
            return Ok(from.finish());
        }
        if offset < end || length > BLOCK || offset.saturating_add(length as u64) > size {
            return Err(malformed());
        }
        let run = &mut block[..length];
        from.read_exact(run)?;
        to.write_all_at(run, offset)?;
        end = offset + length as u64;
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is malformed")
}

/// Hashes what passes through it.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
        }
    }

    fn finish(self) -> Digest {
        Digest(self.hash.finalize().into())
    }
}

impl<T: Write> Hashing<T> {
    fn write_header(&mut self, offset: u64, length: usize) -> io::Result<()> {
        let length = u32::try_from(length).map_err(|_| malformed())?;
        self.write_all(&offset.to_le_bytes())?;
        self.write_all(&length.to_le_bytes())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<T: Read> Hashing<T> {
    fn read_header(&mut self) -> io::Result<(u64, usize)> {
        let (mut offset, mut length) = ([0; 8], [0; 4]);
        self.read_exact(&mut offset)?;
        self.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| malformed())?;
        Ok((u64::from_le_bytes(offset), length))
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.hash.update(bytes);
        Ok(())
    }
}

impl Digest {
    /// Returns the digest of bytes as they are.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        crate::hex::decode(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom("64 hexadecimal digits are expected"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(pieces: &[(u64, &[u8])], size: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        for (offset, bytes) in pieces {
            file.write_all_at(bytes, *offset).unwrap();
        }
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn the_packed_form_is_whole_and_small() {
        let original = file(&[(0, b"first"), (10 << 20, &[7; 70_000])], 64 << 20);
        let mut packed = Vec::new();
        let packed_digest = pack(&original, &mut packed).unwrap();
        assert!(packed.len() < 90_000);
        let copy = tempfile::tempfile().unwrap();
        let unpacked_digest = unpack(&packed[..], &copy, 64 << 20).unwrap();
        assert_eq!(packed_digest, unpacked_digest);
        assert_eq!(digest(&copy).unwrap(), packed_digest);
        let second = tempfile::tempfile().unwrap();
        assert_eq!(copy_with_digest(&copy, &second).unwrap(), packed_digest);
        assert_eq!(digest(&second).unwrap(), packed_digest);
        let mut bytes = [0; 5];
        copy.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"first");
    }

    #[test]
    fn zeros_that_are_stored_do_not_change_the_digest() {
        let holes = file(&[(5000, b"x")], 1 << 20);
        let zeros = file(&[(0, &vec![0; 1 << 20]), (5000, b"x")], 1 << 20);
        assert_eq!(digest(&holes).unwrap(), digest(&zeros).unwrap());
        let longer = file(&[(5000, b"x")], (1 << 20) + 1);
        assert_ne!(digest(&holes).unwrap(), digest(&longer).unwrap());
        let moved = file(&[(5000 + 4096, b"x")], 1 << 20);
        assert_ne!(digest(&holes).unwrap(), digest(&moved).unwrap());
    }

    proptest! {
        #[test]
        fn a_damaged_form_is_an_error_or_has_another_digest(
            place in 0..70_100usize,
            change in 1..=255u8,
            cut: bool,
        ) {
            let original = file(&[(0, b"first"), (1 << 20, &[7; 62_000])], 2 << 20);
            let mut packed = Vec::new();
            let expected = pack(&original, &mut packed).unwrap();
            let place = place % packed.len();
            match cut {
                true => packed.truncate(place),
                false => packed[place] ^= change,
            }
            let copy = tempfile::tempfile().unwrap();
            if let Ok(digest) = unpack(&packed[..], &copy, 2 << 20) {
                prop_assert_ne!(digest, expected);
            }
        }
    }
}
