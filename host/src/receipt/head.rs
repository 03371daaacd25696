use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{ReceiptError, canonical, entry::NO_PREVIOUS, key::ReceiptKey};

/// The end of the log as it should be, in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// How many lines the log has.
    pub(super) count: u64,
    /// How many bytes they have.
    pub(super) bytes: u64,
    /// The digest of the last one.
    pub(super) digest: String,
    /// The number of the first line that must be signed; `None` without a key.
    pub(super) signed_from: Option<u64>,
    /// The signature of all that, if there is a key.
    pub(super) signature: Option<String>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            count: 0,
            bytes: 0,
            digest: NO_PREVIOUS.to_owned(),
            signed_from: None,
            signature: None,
        }
    }
}

/// The size of the file, which ends with spaces. It is written in place, in one sector, so a
/// crash leaves the old one or the new one.
const SIZE: usize = 512;

impl Head {
    /// Reads it. `Ok(None)` if there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        Self::parse(&bytes).map(Some)
    }

    /// Reads the contents of its file.
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it is not a head");
        let head: Self = serde_json::from_slice(bytes).map_err(|_| invalid())?;
        let expected = head.block().map_err(|_| invalid())?;
        match expected == bytes {
            true => Ok(head),
            false => Err(invalid()),
        }
    }

    /// Signs it, if there is a key, and writes it in place of the one that is there. It need
    /// not be on the disk when this returns: the lines after it are counted again.
    pub(super) fn write(
        mut self,
        folder: &Path,
        name: &str,
        key: Option<&ReceiptKey>,
    ) -> Result<(), ReceiptError> {
        self.signature = match key {
            Some(key) => Some(key.sign(&self.signed_bytes()?)),
            None => None,
        };
        let path = folder.join(name);
        let block = self.block()?;
        let write = || -> io::Result<()> {
            match OpenOptions::new().write(true).open(&path) {
                Ok(file) => file.write_all_at(&block, 0),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let mut file = tempfile::NamedTempFile::new_in(folder)?;
                    file.write_all(&block)?;
                    file.as_file().sync_all()?;
                    file.persist(&path)?;
                    Ok(())
                }
                Err(error) => Err(error),
            }
        };
        write().map_err(ReceiptError::io("write", &path))
    }

    /// Returns what is signed.
    pub(super) fn signed_bytes(&self) -> Result<Vec<u8>, ReceiptError> {
        let unsigned = Self {
            signature: None,
            ..self.clone()
        };
        Ok([b"vmcell receipt head\0", unsigned.text()?.as_bytes()].concat())
    }

    /// Returns the contents of its file.
    fn block(&self) -> Result<Vec<u8>, ReceiptError> {
        let mut block = self.text()?.into_bytes();
        if block.len() > SIZE {
            return Err(ReceiptError::TooLong { limit: SIZE });
        }
        block.resize(SIZE, b' ');
        Ok(block)
    }

    fn text(&self) -> Result<String, ReceiptError> {
        canonical(&serde_json::to_value(self).unwrap_or_default())
    }
}
