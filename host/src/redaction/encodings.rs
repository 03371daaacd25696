//! The ways in which programs write a value.

use zeroize::Zeroizing;

/// What is looked for in place of a value.
pub(super) type Pattern = Zeroizing<Vec<u8>>;

/// Shorter values are looked for as they are only: most texts have all of their encodings.
pub(super) const MIN_ENCODED: usize = 4;

/// A longer value is looked for in pieces of this length, so that the beginning of a match
/// that is held back has a limit.
const PIECE: usize = 256;

/// The pieces have these many bytes in common, so that nothing stays between the encodings
/// of two of them.
const OVERLAP: usize = 4;

/// The lines of a value are looked for, too, if they have this length.
const MIN_LINE: usize = 8;

/// Returns the value as it is, in pieces if it is long, and its lines.
pub(super) fn plain(value: &[u8]) -> Vec<&[u8]> {
    let mut parts = pieces(value);
    let lines = value.split(|byte| matches!(byte, b'\n' | b'\r'));
    let lines = lines.filter(|line| line.len() >= MIN_LINE && line.len() < value.len());
    parts.extend(lines.flat_map(pieces));
    parts
}

fn pieces(value: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while rest.len() > PIECE + OVERLAP {
        pieces.push(&rest[..PIECE]);
        rest = &rest[PIECE - OVERLAP..];
    }
    pieces.push(rest);
    pieces
}

/// Returns the encodings of a value: base64 at each position of three, percent-encoding,
/// JSON strings, and hexadecimal.
pub(super) fn encoded(value: &[u8]) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    if value.len() < MIN_ENCODED {
        return patterns;
    }
    for part in pieces(value) {
        for alphabet in [STANDARD, URL_SAFE] {
            patterns.extend((0..3).map(|before| base64(part, alphabet, before)));
        }
        for digits in [LOWER, UPPER] {
            patterns.push(hexadecimal(part, digits));
            for safe in [&b"-._~"[..], b"-._~/", b"-._*"] {
                patterns.push(percent(part, digits, safe, Blank::Percent));
            }
            patterns.push(percent(part, digits, b"-._*", Blank::Plus));
        }
        for escaping in JSON {
            patterns.push(json(part, escaping));
        }
    }
    // Most encodings of most values are the same as others.
    patterns.sort_unstable_by(|a, b| a.as_slice().cmp(b));
    patterns.dedup_by(|a, b| a.as_slice() == b.as_slice());
    patterns.retain(|pattern| !pattern.is_empty() && pattern.as_slice() != value);
    patterns
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns those letters of the base64 of a text that depend on the value only, if there are
/// `before` other bytes before it, or any multiple of three more.
fn base64(value: &[u8], alphabet: &[u8; 64], before: usize) -> Pattern {
    let bit = |at: usize| {
        let byte = value.get(at / 8).copied().unwrap_or(0);
        byte >> (7 - at % 8) & 1
    };
    let (first, end) = (before * 8, (before + value.len()) * 8);
    let letters = (first.div_ceil(6)..end / 6).map(|letter| {
        let bits = letter * 6 - first..letter * 6 - first + 6;
        let index = bits.fold(0, |index, at| index << 1 | bit(at));
        alphabet[usize::from(index)]
    });
    collect(value.len() * 2, letters)
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn digits(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [
        digits[usize::from(byte >> 4)],
        digits[usize::from(byte & 15)],
    ]
}

fn hexadecimal(value: &[u8], alphabet: &[u8; 16]) -> Pattern {
    let letters = value.iter().flat_map(|byte| digits(*byte, alphabet));
    collect(value.len() * 2, letters)
}

/// How a blank is written in percent-encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    Percent,
    /// As in forms.
    Plus,
}

fn percent(value: &[u8], alphabet: &[u8; 16], safe: &[u8], blank: Blank) -> Pattern {
    let mut pattern = room(value.len() * 3);
    for byte in value {
        match byte {
            b' ' if blank == Blank::Plus => pattern.push(b'+'),
            _ if byte.is_ascii_alphanumeric() || safe.contains(byte) => pattern.push(*byte),
            _ => {
                pattern.push(b'%');
                pattern.extend(digits(*byte, alphabet));
            }
        }
    }
    pattern
}

/// How a JSON writer escapes what it need not.
#[derive(Clone, Copy)]
struct JsonEscaping {
    /// All that is not ASCII.
    foreign: bool,
    /// Slashes.
    slashes: bool,
    /// What has a meaning in HTML.
    html: bool,
}

const JSON: [JsonEscaping; 6] = [
    escaping(false, false, false),
    escaping(false, true, false),
    escaping(false, false, true),
    escaping(true, false, false),
    escaping(true, true, false),
    escaping(true, false, true),
];

const fn escaping(foreign: bool, slashes: bool, html: bool) -> JsonEscaping {
    JsonEscaping {
        foreign,
        slashes,
        html,
    }
}

fn json(value: &[u8], escaping: JsonEscaping) -> Pattern {
    let mut pattern = room(value.len() * 6);
    // A piece may begin and end within a character.
    for part in value.utf8_chunks() {
        for letter in part.valid().chars() {
            let short = match letter {
                '"' | '\\' => Some(letter),
                '/' if escaping.slashes => Some(letter),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                '\u{8}' => Some('b'),
                '\u{c}' => Some('f'),
                _ => None,
            };
            let is_escaped = letter < ' '
                || letter > '~' && escaping.foreign
                || matches!(letter, '<' | '>' | '&') && escaping.html;
            match short {
                Some(letter) => pattern.extend([b'\\', letter as u8]),
                None if is_escaped => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        let [high, low] = unit.to_be_bytes();
                        pattern.extend(b"\\u");
                        pattern.extend(digits(high, LOWER));
                        pattern.extend(digits(low, LOWER));
                    }
                }
                None => pattern.extend(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !escaping.foreign {
            pattern.extend(part.invalid());
        }
    }
    pattern
}

/// Returns an empty pattern that does not move, and leave a copy behind, when it grows.
fn room(length: usize) -> Pattern {
    Zeroizing::new(Vec::with_capacity(length))
}

fn collect(length: usize, letters: impl Iterator<Item = u8>) -> Pattern {
    let mut pattern = room(length);
    pattern.extend(letters);
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(value: &str) -> Vec<String> {
        let texts = encoded(value.as_bytes()).into_iter();
        let text = |it: Pattern| String::from_utf8(it.to_vec()).unwrap();
        texts.map(text).collect()
    }

    #[test]
    fn base64_is_found_at_each_position() {
        let value = "hunter2?>";
        let texts = texts(value);
        for (text, expected) in [
            // As `base64` prints them.
            ("hunter2?>", "aHVudGVyMj8+"),
            ("xhunter2?>", "eGh1bnRlcjI/Pg=="),
            ("xxhunter2?>", "eHhodW50ZXIyPz4="),
            ("xxxhunter2?>xxx", "eHh4aHVudGVyMj8+eHh4"),
        ] {
            let found = texts.iter().find(|it| expected.contains(it.as_str()));
            let found = found.unwrap_or_else(|| panic!("{text}: {texts:?}"));
            // But for letters that have bits of others.
            assert!(found.len() >= value.len() * 8 / 6 - 1, "{text}: {found}");
        }
        assert!(texts.contains(&"aHVudGVyMj8-".to_owned()));
    }

    #[test]
    fn other_encodings_are_those_of_common_programs() {
        let found = texts("a b/c\"\\\u{e9}<\u{1f600}\n\u{1}");
        for expected in [
            // Python: quote, quote with safe="", quote_plus; JavaScript: encodeURIComponent
            "a%20b/c%22%5C%C3%A9%3C%F0%9F%98%80%0A%01",
            "a%20b%2Fc%22%5C%C3%A9%3C%F0%9F%98%80%0A%01",
            "a+b%2Fc%22%5C%C3%A9%3C%F0%9F%98%80%0A%01",
            "a%20b%2fc%22%5c%c3%a9%3c%f0%9f%98%80%0a%01",
            // JSON: as Python, JavaScript, PHP and Go write it
            r#"a b/c\"\\\u00e9<\ud83d\ude00\n\u0001"#,
            "a b/c\\\"\\\\\u{e9}<\u{1f600}\\n\\u0001",
            r#"a b\/c\"\\\u00e9<\ud83d\ude00\n\u0001"#,
            "a b/c\\\"\\\\\u{e9}\\u003c\u{1f600}\\n\\u0001",
            "6120622f63225cc3a93cf09f98800a01",
            "6120622F63225CC3A93CF09F98800A01",
        ] {
            assert!(
                found.iter().any(|it| it == expected),
                "{expected}: {found:#?}"
            );
        }
    }

    #[test]
    fn a_short_value_has_no_encodings_and_a_plain_one_few() {
        assert!(texts("abc").is_empty());
        // Six of base64 (here three), and two of hexadecimal.
        assert_eq!(texts("hunter2hunter2").len(), 5);
    }

    #[test]
    fn a_long_value_is_cut_into_pieces_that_overlap() {
        let value: String = (0..300).map(|number| format!("{number:03} ")).collect();
        let mut end = OVERLAP;
        for part in plain(value.as_bytes()) {
            assert!(part.len() <= PIECE + OVERLAP);
            let at = value.find(str::from_utf8(part).unwrap()).unwrap();
            assert_eq!(at, end - OVERLAP);
            end = at + part.len();
        }
        assert_eq!(end, value.len());
        let lines = plain(b"first line\nx\nsecond line\n");
        assert_eq!(
            lines,
            [
                &b"first line\nx\nsecond line\n"[..],
                b"first line",
                b"second line"
            ]
        );
    }
}
