//! SHA-256 digests over labelled fields.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 value. `Display` gives 64 hexadecimal digits.
///
/// ```
/// use vmcell_rootfs::Fingerprint;
///
/// let digest = Fingerprint::new("example").digest();
/// assert_eq!(digest.to_string().len(), 64);
/// assert!(digest.to_string().starts_with(&digest.short()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the digest with these 64 hexadecimal digits, in lower case.
    ///
    /// ```
    /// use vmcell_rootfs::Digest;
    ///
    /// let digest = Digest([7; 32]);
    /// assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
    /// assert_eq!(Digest::parse("07"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return None;
        }
        let mut digest = [0; 32];
        for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Self(digest))
    }

    /// Returns the first 16 hexadecimal digits, as used in file names of the cache.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().chars().take(16).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Hashes the inputs that determine an image. Labels, values and their lengths are all hashed,
/// so that different lists of fields never give the same bytes to hash.
///
/// ```
/// use vmcell_rootfs::Fingerprint;
///
/// let mut a = Fingerprint::new("example");
/// a.field("x", "12").field("y", "3");
/// let mut b = Fingerprint::new("example");
/// b.field("x", "1").field("y", "23");
/// assert_ne!(a.digest(), b.digest());
/// ```
#[derive(Clone, Debug)]
pub struct Fingerprint {
    hasher: Sha256,
}

impl Fingerprint {
    /// Starts a fingerprint. `purpose` separates the digests of different uses.
    #[must_use]
    pub fn new(purpose: &str) -> Self {
        let mut fingerprint = Self {
            hasher: Sha256::new(),
        };
        fingerprint.field("purpose", purpose);
        fingerprint
    }

    /// Adds one input.
    pub fn field(&mut self, label: &str, value: impl AsRef<[u8]>) -> &mut Self {
        for part in [label.as_bytes(), value.as_ref()] {
            // `usize` has at most 64 bits on every target of Rust.
            self.hasher.update((part.len() as u64).to_le_bytes());
            self.hasher.update(part);
        }
        self
    }

    /// Returns the digest of all inputs so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.hasher.clone().finalize().into())
    }
}
