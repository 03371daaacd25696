use std::ops::RangeInclusive;

/// Decodes UTF-8 byte by byte. Invalid sequences become U+FFFD, as the Encoding
/// Standard specifies.
#[derive(Debug)]
pub(super) struct Utf8 {
    code: u32,
    /// How many bytes of the character are missing.
    missing: u8,
    /// The valid values of the next byte.
    next: RangeInclusive<u8>,
}

/// The result of decoding a byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// More bytes are needed.
    Incomplete,
    /// The byte completes this character.
    Character(char),
    /// The byte cannot follow the bytes before it, which are invalid. The byte must
    /// be decoded again.
    Invalid,
}

const CONTINUATION: RangeInclusive<u8> = 0x80..=0xbf;

impl Utf8 {
    pub(super) fn new() -> Self {
        Self {
            code: 0,
            missing: 0,
            next: CONTINUATION,
        }
    }

    /// Returns whether a character is incomplete.
    pub(super) fn is_partial(&self) -> bool {
        self.missing > 0
    }

    pub(super) fn decode(&mut self, byte: u8) -> Decoded {
        if self.missing == 0 {
            return self.begin(byte);
        }
        if !self.next.contains(&byte) {
            self.missing = 0;
            return Decoded::Invalid;
        }
        self.next = CONTINUATION;
        self.code = self.code << 6 | u32::from(byte & 0x3f);
        self.missing = self.missing.saturating_sub(1);
        match self.missing {
            0 => Decoded::Character(char::from_u32(self.code).unwrap_or('\u{fffd}')),
            _ => Decoded::Incomplete,
        }
    }

    fn begin(&mut self, byte: u8) -> Decoded {
        let (missing, bits, next) = match byte {
            0..=0x7f => return Decoded::Character(char::from(byte)),
            0xc2..=0xdf => (1, 0x1f, CONTINUATION),
            0xe0 => (2, 0x0f, 0xa0..=0xbf),
            0xed => (2, 0x0f, 0x80..=0x9f),
            0xe1..=0xef => (2, 0x0f, CONTINUATION),
            0xf0 => (3, 0x07, 0x90..=0xbf),
            0xf4 => (3, 0x07, 0x80..=0x8f),
            0xf1..=0xf3 => (3, 0x07, CONTINUATION),
            _ => return Decoded::Character('\u{fffd}'),
        };
        self.code = u32::from(byte & bits);
        self.missing = missing;
        self.next = next;
        Decoded::Incomplete
    }
}
