use std::borrow::Cow;

use super::character::{ascii_length, is_printable};
use crate::escape::{SequenceKind, Token, Tokenizer, Utf8Decoder};

/// Makes a guest's output, which arrives in pieces, safe to print on a
/// terminal.
///
/// The result is valid UTF-8. It has no control characters except newline, tab
/// and complete colour sequences (with [`ColourPolicy::Keep`]), and no
/// characters that reorder or hide others. Everything else is replaced with
/// U+FFFD, except the carriage return before a newline, which is removed. The
/// result does not depend on where the pieces are split. At most 66 bytes are
/// held back until the next piece.
///
/// ```
/// use vmcell_tree::{ColourPolicy, Sanitizer};
///
/// let mut sanitizer = Sanitizer::new(ColourPolicy::Keep);
/// assert_eq!(sanitizer.feed(b"\x1b[31mred \x9b2J\x1b["), "\x1b[31mred \u{fffd}2J");
/// assert_eq!(sanitizer.feed(b"2J"), "\u{fffd}[2J");
/// assert_eq!(sanitizer.finish(), "\x1b[0m");
/// ```
#[derive(Clone, Debug)]
pub struct Sanitizer {
    colours: ColourPolicy,
    decoder: Utf8Decoder,
    /// A carriage return, or the start of a possible colour sequence.
    pending: String,
    tokenizer: Tokenizer,
    coloured: bool,
}

/// How to treat colour sequences: `ESC [`, numbers separated by `;` or `:`, and
/// `m` (SGR, ECMA-48 8.3.117).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColourPolicy {
    /// Keeps them. Replaces other sequences.
    Keep,
    /// Removes them. Replaces other sequences.
    Remove,
    /// Replaces them like all other sequences.
    Replace,
}

/// The length of the longest accepted colour sequence. Two 24-bit colours and
/// all attributes fit into it.
const MAX_SEQUENCE: usize = 66;

const RESET: &str = "\x1b[0m";

impl Sanitizer {
    /// Creates a sanitizer for a new output.
    pub fn new(colours: ColourPolicy) -> Self {
        Self {
            colours,
            decoder: Utf8Decoder::default(),
            pending: String::new(),
            tokenizer: Tokenizer::default(),
            coloured: false,
        }
    }

    /// Takes the next piece, and returns the text that can be printed now.
    /// Copies nothing if nothing has to be replaced.
    pub fn feed<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        if !self.decoder.is_partial()
            && self.pending.is_empty()
            && let Ok(text) = str::from_utf8(bytes)
            && text[ascii_length(bytes)..].chars().all(is_printable)
        {
            return Cow::Borrowed(text);
        }
        let mut output = String::with_capacity(bytes.len());
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.decode(bytes, |text| self.take_text(text, &mut output));
        self.decoder = decoder;
        Cow::Owned(output)
    }

    /// Ends the output: returns the text that was held back, and a reset
    /// sequence if the output left colours on. The sanitizer can then take
    /// another output.
    pub fn finish(&mut self) -> String {
        let mut output = String::new();
        self.replace_pending(&mut output);
        if std::mem::take(&mut self.decoder).is_partial() {
            output.push(char::REPLACEMENT_CHARACTER);
        }
        if std::mem::take(&mut self.coloured) {
            output.push_str(RESET);
        }
        output
    }

    /// Returns whether the output has left colours on.
    pub fn is_coloured(&self) -> bool {
        self.coloured
    }

    fn take_text(&mut self, mut text: &str, output: &mut String) {
        while let Some(first) = text.chars().next() {
            if !self.pending.is_empty() {
                if self.continue_pending(first, output) {
                    text = &text[first.len_utf8()..];
                }
                continue;
            }
            let ascii = ascii_length(text.as_bytes());
            let end = text[ascii..].find(|character| !is_printable(character));
            let (plain, rest) = text.split_at(end.map_or(text.len(), |end| ascii + end));
            output.push_str(plain);
            let Some(rejected) = rest.chars().next() else {
                return;
            };
            match rejected {
                '\r' => self.pending.push('\r'),
                '\x1b' if self.colours != ColourPolicy::Replace => {
                    self.pending.push('\x1b');
                    self.tokenizer.step('\x1b');
                }
                _ => output.push(char::REPLACEMENT_CHARACTER),
            }
            text = &rest[rejected.len_utf8()..];
        }
    }

    /// Extends or ends the pending sequence. Returns whether `next` is part of
    /// it.
    fn continue_pending(&mut self, next: char, output: &mut String) -> bool {
        let has_room = self.pending.len() + 1 < MAX_SEQUENCE;
        match (self.tokenizer.step(next), next) {
            (Token::Start(SequenceKind::Csi), _) => self.pending.push(next),
            (Token::Part(SequenceKind::Csi), '0'..=';') if has_room => self.pending.push(next),
            (Token::End(SequenceKind::Csi), 'm') => {
                if self.colours == ColourPolicy::Keep {
                    self.coloured = !matches!(self.pending.as_str(), "\x1b[" | "\x1b[0");
                    output.push_str(&self.pending);
                    output.push(next);
                }
                self.pending.clear();
            }
            (_, '\n') if self.pending == "\r" => {
                self.pending.clear();
                return false;
            }
            _ => {
                self.replace_pending(output);
                return false;
            }
        }
        true
    }

    /// Prints the pending sequence with its control character replaced.
    fn replace_pending(&mut self, output: &mut String) {
        if !self.pending.is_empty() {
            output.push(char::REPLACEMENT_CHARACTER);
            output.push_str(&self.pending[1..]);
            self.pending.clear();
            self.tokenizer = Tokenizer::default();
        }
    }
}
