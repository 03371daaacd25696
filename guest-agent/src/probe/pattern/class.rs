/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Class([u64; 4]);

impl Class {
    pub(super) fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut class = Self::default();
        for byte in bytes {
            class.add(byte);
        }
        class
    }

    /// Returns the class of an escaped letter, such as `\d`.
    pub(super) fn escaped(letter: char) -> Option<Self> {
        let class = match letter.to_ascii_lowercase() {
            'd' => Self::of(b'0'..=b'9'),
            's' => Self::of(*b" \t\n\r\x0b\x0c"),
            'w' => Self::matching(is_word),
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() {
            class.inverted()
        } else {
            class
        })
    }

    /// Returns the class with a name, such as `[:alpha:]`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_in: fn(u8) -> bool = match name {
            "alnum" => |byte| byte.is_ascii_alphanumeric(),
            "alpha" => |byte| byte.is_ascii_alphabetic(),
            "blank" => |byte| matches!(byte, b' ' | b'\t'),
            "digit" => |byte| byte.is_ascii_digit(),
            "lower" => |byte| byte.is_ascii_lowercase(),
            "punct" => |byte| byte.is_ascii_punctuation(),
            "space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
            "upper" => |byte| byte.is_ascii_uppercase(),
            "word" => is_word,
            "xdigit" => |byte| byte.is_ascii_hexdigit(),
            _ => return None,
        };
        Some(Self::matching(is_in))
    }

    fn matching(is_in: fn(u8) -> bool) -> Self {
        Self::of((0..=u8::MAX).filter(|byte| is_in(*byte)))
    }

    pub(super) fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= bit(byte);
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    pub(super) fn inverted(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Adds the other case of each letter.
    pub(super) fn in_both_cases(self) -> Self {
        let mut class = self;
        for byte in (b'a'..=b'z').chain(b'A'..=b'Z') {
            if self.contains(byte) {
                class.add(byte ^ 0x20);
            }
        }
        class
    }

    pub(super) fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6));
        word.is_some_and(|word| word & bit(byte) != 0)
    }
}

fn bit(byte: u8) -> u64 {
    1u64.wrapping_shl(u32::from(byte & 63))
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
