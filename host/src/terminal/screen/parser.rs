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
    /// Bytes that were not yet added to the budget.
    uncounted: usize,
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
        let mut counted = text.len();
        loop {
            if self.tokenizer.is_ground() {
                let (plain, rest) = text.split_at(plain_length(text.as_bytes()));
                display.write_ascii(plain.as_bytes());
                text = rest;
            } else {
                let (parts, rest) = text.split_at(self.tokenizer.csi_parts(text.as_bytes()));
                parts.chars().for_each(|next| self.sequence.push(next));
                text = rest;
            }
            let mut characters = text.chars();
            let Some(next) = characters.next() else {
                self.uncounted = self.uncounted.saturating_add(counted);
                return;
            };
            // Only what a control starts is paid for. What was consumed before it does
            // not depend on how the output was cut.
            if next < ' ' {
                let consumed = counted.saturating_sub(text.len());
                display.budget.earn(self.uncounted.saturating_add(consumed));
                self.uncounted = 0;
                counted = text.len();
            }
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

/// Returns how many printable ASCII characters a text starts with.
fn plain_length(text: &[u8]) -> usize {
    let ends_plain = |byte: &u8| !matches!(byte, b' '..=b'~');
    let Some((first, rest)) = text.split_first_chunk::<16>() else {
        return text.iter().position(ends_plain).unwrap_or(text.len());
    };
    match first.iter().position(ends_plain) {
        Some(length) => length,
        None => first.len().saturating_add(long_plain_length(rest)),
    }
}

/// Does the same for long texts: compares several bytes at a time.
fn long_plain_length(text: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    let (chunks, _) = text.as_chunks::<16>();
    let are_plain = |chunk: &&[u8; 16]| chunk.iter().fold(true, |all, byte| all & is_plain(byte));
    let skipped = chunks
        .iter()
        .take_while(are_plain)
        .count()
        .saturating_mul(16);
    let rest = text.get(skipped..).unwrap_or_default();
    let length = rest.iter().position(|byte| !is_plain(byte));
    skipped.saturating_add(length.unwrap_or(rest.len()))
}
