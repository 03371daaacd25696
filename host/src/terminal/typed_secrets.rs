use std::sync::Arc;

use zeroize::Zeroizing;

use crate::redaction::SecretSet;

/// The secrets that were typed into a terminal. They are zeroed when this is dropped.
#[derive(Default)]
pub(super) struct TypedSecrets {
    /// Not empty, the newest last.
    values: Vec<Zeroizing<Vec<u8>>>,
}

/// With more secrets, the oldest are dropped.
const MAX_SECRETS: usize = 16;

/// Of longer secrets only the beginning is masked. A terminal accepts no longer lines.
const MAX_LENGTH: usize = 4096;

/// Shorter secrets are masked only until the next input. Otherwise every later `a` would be
/// masked.
const MIN_PERSISTENT_LENGTH: usize = 4;

impl TypedSecrets {
    /// Adds a secret, without the line ends at its end. Returns whether that changes anything.
    pub(super) fn add(&mut self, secret: &[u8]) -> bool {
        let end = secret
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last + 1);
        let secret = &secret[..end.min(MAX_LENGTH)];
        if secret.is_empty() {
            return false;
        }
        self.values.retain(|known| **known != secret);
        if self.values.len() == MAX_SECRETS {
            self.values.remove(0);
        }
        self.values.push(Zeroizing::new(secret.to_vec()));
        true
    }

    /// Forgets very short secrets, because something else is typed. Returns whether there
    /// were any.
    pub(super) fn forget_short(&mut self) -> bool {
        let count = self.values.len();
        let is_long = |value: &Zeroizing<Vec<u8>>| value.len() >= MIN_PERSISTENT_LENGTH;
        self.values.retain(is_long);
        self.values.len() != count
    }

    /// Returns what to mask: these, and those that programs have got.
    pub(super) fn set(&self, granted: Option<&SecretSet>) -> Arc<SecretSet> {
        let typed = self.values.iter().map(|value| value.as_slice());
        let granted = granted.into_iter().flat_map(SecretSet::bytes);
        Arc::new(SecretSet::new(granted, typed))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::redaction::{Redactor, Thoroughness};

    fn masked(secrets: &TypedSecrets, text: &str) -> Bytes {
        let mut redactor = Redactor::new(secrets.set(None), 0, Thoroughness::Thorough);
        redactor.feed(Bytes::from(text.to_owned())).bytes
    }

    #[test]
    fn a_very_short_secret_is_hidden_until_the_next_input() {
        let mut secrets = TypedSecrets::default();
        assert!(secrets.add(b"a\n") && secrets.add(b"longer"));
        assert_eq!(masked(&secrets, "abc a\rb"), "*bc *\rb");
        assert!(secrets.forget_short());
        assert_eq!(masked(&secrets, "abc longer"), "abc ******");
        assert!(!secrets.forget_short());
    }

    #[test]
    fn the_oldest_of_too_many_secrets_is_forgotten() {
        let mut secrets = TypedSecrets::default();
        assert!(!secrets.add(b"") && !secrets.add(b"\r\n"));
        for number in 0..=MAX_SECRETS {
            assert!(secrets.add(format!("secret{number:02}").as_bytes()));
            // Already there, so it does not displace another.
            secrets.add(format!("secret{number:02}\r\n").as_bytes());
        }
        let text = "secret00 secret01 secret16";
        assert_eq!(masked(&secrets, text), "secret00 ******** ********");
    }
}
