//! Terminal output as plain text.

mod line_buffer;
#[cfg(test)]
mod tests;

use line_buffer::LineBuffer;
use vmcell_tree::escape::{SequenceKind, Token, Tokenizer, Utf8Decoder};

use super::sequence::Sequence;

/// Converts terminal output to plain text, without escape sequences.
///
/// The text holds no control characters but newline and tab. A line that is
/// rewritten, as by progress bars and line editors, appears once, in its final
/// form. For full-screen programs the text is what they drew, in drawing order;
/// use the screen instead.
///
/// Bytes may be split anywhere. Memory is bounded for any input.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainTextFilter {
    decoder: Utf8Decoder,
    tokenizer: Tokenizer,
    sequence: Sequence,
    line: LineBuffer,
}

impl PlainTextFilter {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Sets the width of the terminal. Longer lines wrap, and a carriage return
    /// goes to the start of the wrapped row.
    pub(crate) fn set_columns(&mut self, columns: u16) {
        self.line.set_columns(columns.into());
    }

    /// Processes bytes, and appends the lines that they complete to the text.
    pub(crate) fn feed(&mut self, bytes: &[u8], text: &mut String) {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.decode(bytes, |characters| self.parse(characters, text));
        self.decoder = decoder;
    }

    /// Appends what was not emitted of the incomplete line.
    ///
    /// If the line is rewritten later, it is emitted again, as a new line.
    pub(crate) fn flush(&mut self, text: &mut String) {
        self.line.emit(text);
    }

    fn parse(&mut self, characters: &str, text: &mut String) {
        for character in characters.chars() {
            match character {
                // The most frequent case.
                ' '..='~' if self.tokenizer.is_ground() => self.line.put(character, text),
                '\u{80}'..='\u{9f}' => self.c1_control(character, text),
                _ => self.step(character, text),
            }
        }
    }

    /// Processes a C1 control: the 8-bit form of an escape and a letter. Only the
    /// string terminator has a meaning in a string.
    fn c1_control(&mut self, control: char, text: &mut String) {
        if !self.tokenizer.is_in_string() || control == '\u{9c}' {
            self.tokenizer.step('\x1b');
            let letter = char::from_u32(u32::from(control) - 0x40);
            self.step(letter.unwrap_or_default(), text);
        }
    }

    fn step(&mut self, next: char, text: &mut String) {
        match (self.tokenizer.step(next), next) {
            (Token::Text, _) => self.line.put(next, text),
            (Token::Control, _) => self.line.control(next, text),
            // IND and NEL.
            (Token::Escape(None), 'D' | 'E') => self.line.control('\n', text),
            // RI, DECRC and RIS move the cursor to another row.
            (Token::Escape(None), 'M' | '8' | 'c') => self.line.edit('A', 1, text),
            (Token::Start(SequenceKind::Csi), _) => self.sequence.clear(),
            (Token::Part(SequenceKind::Csi), _) => self.sequence.push(next),
            // Private sequences, and those with intermediates, edit no text.
            (Token::End(SequenceKind::Csi), _) if self.sequence.is_standard() => {
                self.line.edit(next, self.sequence.parameter(0), text);
            }
            _ => {}
        }
    }
}
