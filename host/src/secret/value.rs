use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use sha2::{Digest as _, Sha256};
use vmcell_wire::SecretVariable;
use zeroize::Zeroizing;

use super::{Secret, SecretError};

/// The value of a secret. Its memory is zeroed when the last handle is dropped, and nothing
/// prints it.
#[derive(Clone)]
pub struct SecretValue(Arc<Zeroizing<String>>);

impl SecretValue {
    /// Returns the value.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns a copy of its bytes.
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.0.as_bytes().to_vec())
    }

    /// Returns an entry of an environment that sets a variable to it.
    pub(crate) fn masked_variable(&self, name: &[u8]) -> Vec<u8> {
        let variable = [name, b"=", self.expose().as_bytes()].concat();
        let variable = Zeroizing::new(variable);
        // Services with the same environment have equal specs.
        let digest = Sha256::digest(&variable);
        let seed = digest.first_chunk().copied().unwrap_or_default();
        SecretVariable::mask(&variable, u64::from_le_bytes(seed))
    }

    /// Reads a file, without the line end at its end.
    pub(super) fn read_line(name: &str, path: &Path) -> Result<Self, SecretError> {
        let mut bytes = Zeroizing::new(Self::read(name, path)?);
        for end in [b'\n', b'\r'] {
            match bytes.last() {
                Some(last) if *last == end => drop(bytes.pop()),
                _ => break,
            }
        }
        Self::from_bytes(name, std::mem::take(&mut *bytes))
    }

    /// Reads a file, or a little more of it than a value may have.
    pub(super) fn read(name: &str, path: &Path) -> Result<Vec<u8>, SecretError> {
        let read = || -> io::Result<Zeroizing<Vec<u8>>> {
            let file = File::open(path)?;
            // If it had to move, it would leave a copy behind.
            let room = Secret::MAX_LENGTH + LINE_END;
            let mut bytes = Zeroizing::new(Vec::with_capacity(room + 1));
            file.take(room as u64 + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let mut bytes = read().map_err(|source| SecretError::File {
            name: name.to_owned(),
            path: path.to_owned(),
            source,
        })?;
        Ok(std::mem::take(&mut *bytes))
    }

    pub(super) fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, SecretError> {
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                Err(SecretError::NotUtf8 {
                    name: name.to_owned(),
                })
            }
        }
    }
}

/// The length of the longest line end.
const LINE_END: usize = 2;

impl From<String> for SecretValue {
    fn from(value: String) -> Self {
        Self(Arc::new(Zeroizing::new(value)))
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}
