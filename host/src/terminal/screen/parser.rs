use vmcell_tree::escape::{SequenceKind, Token, Tokenizer, Utf8Decoder};

use super::display::Display;
use crate::terminal::sequence::Sequence;

/// How many bytes of a string are kept. The rest is dropped.
const MAX_STRING: usize = 1024;

/// Parses text and control sequences, which may be split anywhere, and executes
/// them on a display.
///
/// Its memory is bounded: numbers and strings have limits, and what exceeds them
/// is parsed to its end and dropped.
#[derive(Debug, Default)]
pub(super) struct Parser {
    decoder: Utf8Decoder,
    tokenizer: Tokenizer,
    sequence: Sequence,
    string: String,
}

impl Parser {
    pub(super) fn feed(&mut self, bytes: &[u8], display: &mut Display) {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.decode(bytes, |text| self.parse(text, display));
        self.decoder = decoder;
    }

    /// Returns how many bytes are allocated for an incomplete sequence.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.string.capacity()
    }

    fn parse(&mut self, mut text: &str, display: &mut Display) {
        loop {
            if self.tokenizer.is_ground() {
                let plain = text.bytes().position(|byte| !matches!(byte, b' '..=b'~'));
                let (plain, rest) = text.split_at(plain.unwrap_or(text.len()));
                display.write_ascii(plain.as_bytes());
                text = rest;
            }
            let mut characters = text.chars();
            let Some(next) = characters.next() else {
                return;
            };
            text = characters.as_str();
            self.step(next, display);
        }
    }

    fn step(&mut self, next: char, display: &mut Display) {
        match self.tokenizer.step(next) {
            Token::Nothing => {}
            Token::Text => display.write(next),
            Token::Control => display.execute(next),
            Token::Escape(intermediate) => display.escape(intermediate, next),
            Token::Start(SequenceKind::Csi) => self.sequence.clear(),
            Token::Part(SequenceKind::Csi) => self.sequence.push(next),
            Token::End(SequenceKind::Csi) => display.csi(&self.sequence, next),
            Token::Start(_) => self.string.clear(),
            Token::Part(_) if self.string.len() < MAX_STRING => self.string.push(next),
            Token::End(SequenceKind::Osc) => {
                display.osc(self.string.as_bytes(), next == '\x07');
            }
            Token::End(SequenceKind::Dcs) => display.dcs(self.string.as_bytes()),
            Token::Part(_) | Token::End(SequenceKind::Other) => {}
        }
    }
}
