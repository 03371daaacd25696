//! Terminal output as plain text.

mod line_buffer;
mod parser;
#[cfg(test)]
mod tests;

use line_buffer::LineBuffer;
use parser::{Parser, Step};

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
    /// The beginning of an incomplete UTF-8 character.
    partial: Vec<u8>,
    parser: Parser,
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
        if self.partial.is_empty() {
            return self.decode(bytes, text);
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        self.decode(&joined, text);
    }

    /// Appends what was not emitted of the incomplete line.
    ///
    /// If the line is rewritten later, it is emitted again, as a new line.
    pub(crate) fn flush(&mut self, text: &mut String) {
        self.line.emit(text);
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String) {
        while let Err(error) = str::from_utf8(bytes) {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            self.parse(str::from_utf8(valid).unwrap_or_default(), text);
            let Some(invalid) = error.error_len() else {
                self.partial = rest.to_vec();
                return;
            };
            self.parse("\u{fffd}", text);
            bytes = &rest[invalid..];
        }
        self.parse(str::from_utf8(bytes).unwrap_or_default(), text);
    }

    fn parse(&mut self, characters: &str, text: &mut String) {
        for character in characters.chars() {
            match self.parser.step(character) {
                Step::Nothing => {}
                Step::Character(character) => self.line.put(character, text),
                Step::Control(control) => self.line.control(control, text),
                Step::Csi { kind, number } => self.line.edit(kind, number.into(), text),
            }
        }
    }
}
