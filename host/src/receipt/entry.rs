use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Receipt, ReceiptError, canonical};
use crate::sparse::Digest;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReceiptEntry {
    /// Its number, from 1 on.
    pub sequence: u64,
    /// The digest of the line before it; zeros for the first one.
    pub previous: String,
    /// The receipt. It is a value, so that lines of newer versions are read, too.
    pub receipt: Value,
    /// The digest of this line.
    pub digest: String,
    /// The signature of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Where a receipt is in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceiptId {
    /// The number of its line.
    pub sequence: u64,
    /// The digest of its line.
    pub digest: String,
}

/// What the first line has in place of the digest of the line before it.
pub(super) const NO_PREVIOUS: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

impl ReceiptEntry {
    /// Returns the line after `previous`, without a signature.
    pub(super) fn new(
        sequence: u64,
        previous: String,
        receipt: &Receipt,
    ) -> Result<Self, ReceiptError> {
        // Of its fields none has keys other than text, so this does not fail.
        let receipt = serde_json::to_value(receipt).unwrap_or_default();
        let digest = digest(sequence, &previous, &receipt)?;
        Ok(Self {
            sequence,
            previous,
            receipt,
            digest,
            signature: None,
        })
    }

    /// Returns its digest, computed again.
    pub(super) fn computed_digest(&self) -> Result<String, ReceiptError> {
        digest(self.sequence, &self.previous, &self.receipt)
    }

    /// Returns the line, without its end.
    pub(super) fn line(&self) -> Result<String, ReceiptError> {
        canonical(&serde_json::to_value(self).unwrap_or_default())
    }

    /// Reads a line. Returns `None` if it is not exactly what would be written.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let is_canonical = canonical(&value).is_ok_and(|text| text.as_bytes() == line);
        let entry = is_canonical.then(|| serde_json::from_value(value).ok());
        entry.flatten()
    }

    /// Returns a text of its receipt, such as the audit id.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.receipt.get(key)?.as_str()
    }

    /// Returns where it is in the log.
    pub fn id(&self) -> ReceiptId {
        ReceiptId {
            sequence: self.sequence,
            digest: self.digest.clone(),
        }
    }

    /// Returns whether it is the one that a user means: by its number, the audit id, or the
    /// beginning of its digest.
    pub fn matches(&self, wanted: &str) -> bool {
        /// As many digits are not a number by accident.
        const MIN_DIGITS: usize = 8;
        self.sequence.to_string() == wanted
            || self.text("audit_id") == Some(wanted)
            || wanted.len() >= MIN_DIGITS && self.digest.starts_with(wanted)
    }
}

fn digest(sequence: u64, previous: &str, receipt: &Value) -> Result<String, ReceiptError> {
    let signed = json!({ "previous": previous, "receipt": receipt, "sequence": sequence });
    Ok(Digest::of_bytes(canonical(&signed)?.as_bytes()).to_string())
}
