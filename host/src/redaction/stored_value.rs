use zeroize::Zeroizing;

use super::{encodings::Pattern, secret_set::MIN_LENGTH};

/// A value that is looked for in stored text.
pub(super) struct StoredValue {
    pub(super) bytes: Pattern,
    /// Its visible characters.
    pub(super) letters: Zeroizing<Vec<char>>,
}

impl StoredValue {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
        let visible = text.chars().filter(|letter| !letter.is_control());
        let mut letters = Zeroizing::new(Vec::with_capacity(bytes.len()));
        letters.extend(visible);
        Self {
            bytes: Zeroizing::new(bytes.to_vec()),
            letters,
        }
    }

    pub(super) fn is_short(&self) -> bool {
        self.bytes.len() < MIN_LENGTH
    }
}
