use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use crate::sparse::Digest;

/// The key of a template: all that it is made of.
#[derive(Default)]
pub(crate) struct KeyParts(Vec<u8>);

impl KeyParts {
    /// Adds a value under a name.
    pub(crate) fn add(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), value] {
            self.0.extend((part.len() as u64).to_le_bytes());
            self.0.extend(part);
        }
    }

    /// Adds a file. Its contents are not read: a write changes its times.
    pub(crate) fn add_file(&mut self, name: &str, path: &Path) -> io::Result<()> {
        let path = path.canonicalize()?;
        let metadata = fs::metadata(&path)?;
        let identity = format!(
            "{}-{}-{}-{}.{}",
            metadata.dev(),
            metadata.ino(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        self.add(name, path.as_os_str().as_encoded_bytes());
        self.add(name, identity.as_bytes());
        Ok(())
    }

    pub(crate) fn key(&self) -> String {
        Digest::of_bytes(&self.0).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_another_key() {
        let key = |values: &[(&str, &str)]| {
            let mut parts = KeyParts::default();
            for (name, value) in values {
                parts.add(name, value.as_bytes());
            }
            parts.key()
        };
        assert_eq!(key(&[("a", "bc")]), key(&[("a", "bc")]));
        assert_ne!(key(&[("a", "bc")]), key(&[("ab", "c")]));
        assert_ne!(key(&[("a", "b"), ("c", "d")]), key(&[("a", "bcd")]));
    }

    #[test]
    fn a_file_that_was_written_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let key = || {
            let mut parts = KeyParts::default();
            parts.add_file("image", &path).unwrap();
            parts.key()
        };
        fs::write(&path, "one").unwrap();
        let before = key();
        assert_eq!(key(), before);
        fs::write(&path, "three").unwrap();
        assert_ne!(key(), before);
    }
}
