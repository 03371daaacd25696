use std::borrow::Cow;

use super::character::{ascii_length, is_printable};

/// Makes output of a guest, which comes in pieces, safe to print on a terminal.
///
/// What passes is valid UTF-8. It holds no control characters but newline, tab
/// and whole colour sequences (if those are [kept](ColourPolicy::Keep)), and no
/// characters that reorder or hide others. Whatever is replaced becomes U+FFFD,
/// but for the return before a newline, which is left out. The pieces may be cut
/// anywhere: the result is the same as for the whole. At most 66 bytes are held
/// back until the next piece.
///
/// ```
/// use vmcell_tree::{ColourPolicy, Sanitizer};
///
/// let mut sanitizer = Sanitizer::new(ColourPolicy::Keep);
/// assert_eq!(sanitizer.pass(b"\x1b[31mred \x9b2J\x1b["), "\x1b[31mred \u{fffd}2J");
/// assert_eq!(sanitizer.pass(b"2J"), "\u{fffd}[2J");
/// assert_eq!(sanitizer.finish(), "\x1b[0m");
/// ```
#[derive(Clone, Debug)]
pub struct Sanitizer {
    colours: ColourPolicy,
    /// The beginning of a character whose end has not come yet.
    partial: Vec<u8>,
    /// A return, or the beginning of what may become a colour sequence.
    pending: String,
    coloured: bool,
}

/// What becomes of colour sequences: `ESC [`, numbers with `;` or `:` between
/// them, and `m` (SGR, ECMA-48 8.3.117).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColourPolicy {
    /// They pass. Other sequences are replaced.
    Keep,
    /// They are left out. Other sequences are replaced.
    Remove,
    /// They are replaced as all other sequences are.
    Replace,
}

/// Longer colour sequences are replaced. Two colours of 24 bits and all
/// attributes fit in.
const MAX_SEQUENCE: usize = 66;

const RESET: &str = "\x1b[0m";

impl Sanitizer {
    /// Begins at the beginning of an output.
    pub fn new(colours: ColourPolicy) -> Self {
        Self {
            colours,
            partial: Vec::new(),
            pending: String::new(),
            coloured: false,
        }
    }

    /// Takes a piece, and returns what can be printed now. Nothing is copied
    /// where nothing has to be replaced.
    pub fn pass<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        if self.partial.is_empty()
            && self.pending.is_empty()
            && let Ok(text) = str::from_utf8(bytes)
            && text[ascii_length(bytes)..].chars().all(is_printable)
        {
            return Cow::Borrowed(text);
        }
        let mut printed = String::with_capacity(bytes.len());
        if self.partial.is_empty() {
            self.take(bytes, &mut printed);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            self.take(&joined, &mut printed);
        }
        Cow::Owned(printed)
    }

    /// Returns what was held back, and what ends the colours that the output has
    /// left on. It can go on with another output then.
    pub fn finish(&mut self) -> String {
        let mut printed = String::new();
        self.replace_pending(&mut printed);
        if !std::mem::take(&mut self.partial).is_empty() {
            printed.push(char::REPLACEMENT_CHARACTER);
        }
        if std::mem::take(&mut self.coloured) {
            printed.push_str(RESET);
        }
        printed
    }

    /// Whether what is printed next would have colours of the guest.
    pub fn is_coloured(&self) -> bool {
        self.coloured
    }

    fn take(&mut self, bytes: &[u8], printed: &mut String) {
        let (bytes, partial) = bytes.split_at(bytes.len() - partial_length(bytes));
        for chunk in bytes.utf8_chunks() {
            self.take_text(chunk.valid(), printed);
            if !chunk.invalid().is_empty() {
                self.replace_pending(printed);
                printed.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.partial = partial.to_vec();
    }

    fn take_text(&mut self, mut text: &str, printed: &mut String) {
        while let Some(first) = text.chars().next() {
            if !self.pending.is_empty() {
                if self.continue_pending(first, printed) {
                    text = &text[first.len_utf8()..];
                }
                continue;
            }
            let ascii = ascii_length(text.as_bytes());
            let end = text[ascii..].find(|character| !is_printable(character));
            let (plain, rest) = text.split_at(end.map_or(text.len(), |end| ascii + end));
            printed.push_str(plain);
            let Some(unsafe_one) = rest.chars().next() else {
                return;
            };
            match unsafe_one {
                '\r' => self.pending.push('\r'),
                '\x1b' if self.colours != ColourPolicy::Replace => self.pending.push('\x1b'),
                _ => printed.push(char::REPLACEMENT_CHARACTER),
            }
            text = &rest[unsafe_one.len_utf8()..];
        }
    }

    /// Decides what the next character makes of what is pending. Returns whether
    /// the character is part of it.
    fn continue_pending(&mut self, next: char, printed: &mut String) -> bool {
        let has_room = self.pending.len() + 1 < MAX_SEQUENCE;
        match (self.pending.as_str(), next) {
            ("\r", '\n') => self.pending.clear(),
            ("\x1b", '[') => {
                self.pending.push(next);
                return true;
            }
            (pending, '0'..=';') if pending.starts_with("\x1b[") && has_room => {
                self.pending.push(next);
                return true;
            }
            (pending, 'm') if pending.starts_with("\x1b[") => {
                if self.colours == ColourPolicy::Keep {
                    self.coloured = !matches!(pending, "\x1b[" | "\x1b[0");
                    printed.push_str(pending);
                    printed.push(next);
                }
                self.pending.clear();
                return true;
            }
            _ => self.replace_pending(printed),
        }
        false
    }

    /// What is pending is a control character, and perhaps text behind it.
    fn replace_pending(&mut self, printed: &mut String) {
        if !self.pending.is_empty() {
            printed.push(char::REPLACEMENT_CHARACTER);
            printed.push_str(&self.pending[1..]);
            self.pending.clear();
        }
    }
}

/// How many bytes at the end are the beginning of a character that is not
/// complete.
fn partial_length(bytes: &[u8]) -> usize {
    const MAX_PARTIAL: usize = 3;
    (1..=bytes.len().min(MAX_PARTIAL))
        .find(|length| {
            let end = &bytes[bytes.len() - length..];
            str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}
