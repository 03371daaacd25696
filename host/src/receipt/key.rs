use std::{
    fmt, fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    str::FromStr,
};

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use rustix::process::geteuid;
use zeroize::Zeroizing;

use super::ReceiptError;
use crate::{hex, random::random_bytes};

/// The key of an installation that signs its receipts.
pub(super) struct ReceiptKey(SigningKey);

/// The key with which signatures of receipts are verified. Its text is 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptPublicKey(VerifyingKey);

impl ReceiptKey {
    /// Reads the key. `Ok(None)` if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, ReceiptError> {
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(ReceiptError::io("read", path))?,
        };
        let wrong = |reason| ReceiptError::Key {
            path: path.to_owned(),
            reason,
        };
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
            return Err(wrong(
                "others can read or replace it: make a new one, and set its mode to 0600",
            ));
        }
        let text = fs::read_to_string(path).map_err(ReceiptError::io("read", path))?;
        let text = Zeroizing::new(text);
        let seed = hex::decode::<32>(text.trim_end());
        let seed = seed.ok_or_else(|| wrong("it is not a key: remove it, and make a new one"))?;
        Ok(Some(Self(SigningKey::from_bytes(&Zeroizing::new(seed)))))
    }

    /// Makes a key, unless there is one. Nobody else can read it.
    pub(super) fn create(folder: &Path, path: &Path) -> Result<Self, ReceiptError> {
        if let Some(key) = Self::read(path)? {
            return Ok(key);
        }
        let failed = |error| ReceiptError::io("write", path)(error);
        let seed = random_bytes::<32>().map_err(|error| failed(io::Error::other(error)))?;
        let seed = Zeroizing::new(seed);
        let text = Zeroizing::new(format!("{}\n", &*Zeroizing::new(hex::encode(&*seed))));
        // Its mode is 0600.
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist_noclobber(path)?;
            Ok(())
        };
        write().map_err(failed)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> String {
        hex::encode(&self.0.sign(bytes).to_bytes())
    }

    pub(super) fn public(&self) -> ReceiptPublicKey {
        ReceiptPublicKey(self.0.verifying_key())
    }
}

/// Returns what is signed of a line.
pub(super) fn signed_digest(digest: &str) -> Vec<u8> {
    [b"vmcell receipt\0", digest.as_bytes()].concat()
}

impl ReceiptPublicKey {
    /// Returns whether the signature is one of these bytes.
    pub(super) fn verifies(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = hex::decode::<64>(signature).map(|bytes| Signature::from_bytes(&bytes));
        signature.is_some_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

impl fmt::Display for ReceiptPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0.as_bytes()))
    }
}

impl FromStr for ReceiptPublicKey {
    type Err = ReceiptError;

    fn from_str(text: &str) -> Result<Self, ReceiptError> {
        let bytes = hex::decode::<32>(text.trim()).ok_or(ReceiptError::PublicKey)?;
        let key = VerifyingKey::from_bytes(&bytes);
        key.map(Self).map_err(|_| ReceiptError::PublicKey)
    }
}
