//! Digests of what a template is made of.

use sha2::{Digest, Sha256};
use vmcell_tree::json::hex;

/// A digest of a list of named parts. Different lists have different digests,
/// wherever their parts begin and end.
#[derive(Default)]
pub(crate) struct PartsDigest(Sha256);

impl PartsDigest {
    /// Adds a part under a name.
    pub(crate) fn add(&mut self, name: &str, part: impl AsRef<[u8]>) {
        for bytes in [name.as_bytes(), part.as_ref()] {
            self.0.update((bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        }
    }

    /// Returns the digest in hexadecimal.
    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[(&str, &str)]) -> String {
        let mut digest = PartsDigest::default();
        for (name, part) in parts {
            digest.add(name, part);
        }
        digest.finish()
    }

    #[test]
    fn parts_are_not_confused_with_each_other() {
        assert_eq!(of(&[("a", "b")]), of(&[("a", "b")]));
        assert_ne!(of(&[("a", "bc")]), of(&[("ab", "c")]));
        assert_ne!(of(&[("a", "b"), ("a", "c")]), of(&[("a", "bac")]));
        assert_eq!(of(&[]).len(), 64);
    }
}
