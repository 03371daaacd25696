//! Text of which each byte is known by its offset: the lines of `seq`.

use anyhow::{Result, ensure};
use bytes::Bytes;

/// The lines of `seq 1 COUNT`.
pub(crate) struct Pattern {
    pub(crate) count: u64,
    text: Vec<u8>,
}

impl Pattern {
    pub(crate) fn new(count: u64) -> Self {
        let text: String = (1..=count).map(|number| format!("{number}\n")).collect();
        Self {
            count,
            text: text.into_bytes(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.text.len() as u64
    }

    /// Checks bytes that were received at an offset.
    pub(crate) fn check(&self, offset: u64, bytes: &Bytes) -> Result<()> {
        let start = offset as usize;
        let expected = self.text.get(start..start + bytes.len());
        ensure!(
            expected == Some(&bytes[..]),
            "{} bytes at offset {offset} of {} are not those that were written",
            bytes.len(),
            self.len()
        );
        Ok(())
    }
}
