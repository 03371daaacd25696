use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::ImageProblem;
use crate::Digest;

/// Reads a blob, and compares its bytes with the digest and the size that it must have. An
/// error that it returns has an [`ImageProblem`] inside.
pub(super) struct Verified<R> {
    reader: R,
    hasher: Sha256,
    read: u64,
    digest: Digest,
    /// None if only the digest is known.
    size: Option<u64>,
}

impl<R: Read> Verified<R> {
    pub(super) fn new(reader: R, digest: Digest, size: Option<u64>) -> Self {
        Self {
            reader,
            hasher: Sha256::new(),
            read: 0,
            digest,
            size,
        }
    }

    fn check_end(&mut self) -> Result<(), ImageProblem> {
        if let Some(size) = self.size
            && self.read != size
        {
            return Err(ImageProblem::Size {
                digest: self.digest,
                expected: size,
                found: self.read,
            });
        }
        let found = Digest(self.hasher.clone().finalize().into());
        match found == self.digest {
            true => Ok(()),
            false => Err(ImageProblem::Digest {
                expected: self.digest,
                found,
            }),
        }
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let length = self.reader.read(buffer)?;
        if length == 0 {
            self.check_end().map_err(io::Error::other)?;
            return Ok(0);
        }
        self.hasher.update(&buffer[..length]);
        self.read += length as u64;
        if let Some(size) = self.size.filter(|&size| self.read > size) {
            return Err(io::Error::other(ImageProblem::Size {
                digest: self.digest,
                expected: size,
                found: self.read,
            }));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], of: &[u8], size: Option<u64>) -> io::Result<Vec<u8>> {
        let digest = Digest(Sha256::digest(of).into());
        let mut read = Vec::new();
        Verified::new(text, digest, size).read_to_end(&mut read)?;
        Ok(read)
    }

    #[test]
    fn only_what_was_promised_is_read_to_its_end() {
        assert_eq!(read(b"text", b"text", Some(4)).unwrap(), b"text");
        assert_eq!(read(b"text", b"text", None).unwrap(), b"text");
        for (text, size, said) in [
            (&b"Text"[..], Some(4), "digest"),
            (b"text!", Some(4), "bytes"),
            (b"tex", Some(4), "bytes"),
            (b"tex", None, "digest"),
        ] {
            let error = read(text, b"text", size).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
