//! Makes a guest's output safe for the user's terminal.
//!
//! The guest is untrusted, and a terminal interprets what is printed on it: it
//! answers queries as if the user had typed the answer, writes to the
//! clipboard, moves its window, opens files. So only what draws passes: text,
//! some control characters, and the sequences that `escape.rs` and `osc.rs`
//! list. Unknown sequences are dropped. A sequence passes only when it is
//! complete, so the output never ends in the middle of one.

mod escape;
mod osc;
mod state;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::state::{Change, Changes};
use crate::escape::{SequenceKind, Token, Tokenizer, Utf8Decoder};

/// The longest control sequence that passes, without its first two bytes and its
/// last.
const MAX_CSI: usize = 256;

/// The longest OSC that passes: a title, a colour, a link.
const MAX_OSC: usize = 4096;

const SHIFT_OUT: char = '\x0e';
const SHIFT_IN: char = '\x0f';

/// Makes a guest's output safe for the user's terminal: passes only what draws,
/// and records how to undo changes of the terminal's state. The output may be
/// split anywhere.
///
/// ```
/// use vmcell_tree::TerminalFilter;
///
/// let mut filter = TerminalFilter::default();
/// // Colours pass, and what reads the clipboard does not.
/// assert_eq!(&*filter.pass(b"\x1b[31mred\x1b]52;c;?\x07"), b"\x1b[31mred");
/// assert_eq!(filter.undo(), b"\x1b[m");
/// ```
#[derive(Debug, Default)]
pub struct TerminalFilter {
    decoder: Utf8Decoder,
    tokenizer: Tokenizer,
    /// An unfinished sequence. At its limit it is too long to pass.
    sequence: String,
    changes: Changes,
}

impl TerminalFilter {
    /// Returns the bytes that may be printed.
    pub fn pass<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let unfinished = !self.tokenizer.is_ground() || self.decoder.is_partial();
        if !unfinished && plain_length(bytes) == bytes.len() {
            return Cow::Borrowed(bytes);
        }
        let mut passed = Vec::with_capacity(bytes.len());
        let mut decoder = std::mem::take(&mut self.decoder);
        // Invalid UTF-8 is replaced, because some terminals interpret single
        // bytes as control characters.
        decoder.decode(bytes, |text| self.process(text, &mut passed));
        self.decoder = decoder;
        Cow::Owned(passed)
    }

    /// Returns the sequences that restore the terminal's state.
    pub fn undo(&mut self) -> Vec<u8> {
        self.changes.take_undo_sequences()
    }

    fn process(&mut self, mut text: &str, passed: &mut Vec<u8>) {
        loop {
            if self.tokenizer.is_ground() {
                let (plain, rest) = text.split_at(plain_length(text.as_bytes()));
                passed.extend_from_slice(plain.as_bytes());
                let end = rest.bytes().position(|byte| byte.is_ascii());
                let (characters, rest) = rest.split_at(end.unwrap_or(rest.len()));
                push_characters(characters, passed);
                text = rest;
            }
            let mut characters = text.chars();
            let Some(next) = characters.next() else {
                return;
            };
            let token = self.tokenizer.step(next);
            // Text that interrupts a sequence is processed like other text.
            if token != Token::Text {
                text = characters.as_str();
                self.process_token(token, next, passed);
            }
        }
    }

    fn process_token(&mut self, token: Token, next: char, passed: &mut Vec<u8>) {
        let changes = &mut self.changes;
        match token {
            Token::Control => self.execute(next, passed),
            Token::Escape(intermediate) => {
                escape::pass_escape(intermediate, next, changes, passed);
            }
            Token::Start(_) => self.sequence.clear(),
            Token::Part(kind) if self.sequence.len() < limit(kind) => self.sequence.push(next),
            Token::End(kind) if self.sequence.len() < limit(kind) => match kind {
                SequenceKind::Csi => {
                    escape::pass_csi(self.sequence.as_bytes(), next, changes, passed);
                }
                _ => osc::pass(self.sequence.as_bytes(), changes, passed),
            },
            Token::Text | Token::Nothing | Token::Part(_) | Token::End(_) => {}
        }
    }

    /// Passes a control character, also within a sequence, if it only moves the
    /// cursor, rings the bell or selects a character set.
    fn execute(&mut self, control: char, passed: &mut Vec<u8>) {
        match control {
            SHIFT_OUT => self.changes.record(Change::CharacterSet),
            SHIFT_IN | '\x07'..='\x0d' => {}
            _ => return,
        }
        push(control, passed);
    }
}

/// Returns whether a byte is text or a control character that always passes:
/// bell, backspace, tab, newline, vertical tab, form feed and carriage return.
fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..0x7f | 0x07..0x0e)
}

/// Returns how many bytes at the start are plain. Checks blocks, because most
/// bytes are plain.
fn plain_length(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let is_plain_block = |block: &&[u8]| block.iter().fold(true, |all, byte| all & is_plain(*byte));
    let blocks = bytes.chunks_exact(BLOCK).take_while(is_plain_block).count();
    let rest = bytes.iter().skip(blocks * BLOCK);
    blocks * BLOCK + rest.take_while(|byte| is_plain(**byte)).count()
}

/// Returns the length from which on a sequence does not pass.
fn limit(kind: SequenceKind) -> usize {
    match kind {
        SequenceKind::Csi => MAX_CSI,
        SequenceKind::Osc => MAX_OSC,
        SequenceKind::Dcs | SequenceKind::Other => 0,
    }
}

/// Passes characters except U+0080 to U+009F, the C1 controls, which begin
/// sequences as an escape character does.
fn push_characters(text: &str, passed: &mut Vec<u8>) {
    // The first byte of their UTF-8 encoding.
    if !text.as_bytes().contains(&0xc2) {
        passed.extend_from_slice(text.as_bytes());
        return;
    }
    let is_control = |character: char| ('\u{80}'..='\u{9f}').contains(&character);
    for harmless in text.split(is_control) {
        passed.extend_from_slice(harmless.as_bytes());
    }
}

fn push(character: char, passed: &mut Vec<u8>) {
    passed.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}
