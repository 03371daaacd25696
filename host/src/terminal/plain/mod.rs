//! What a terminal printed as plain text.

mod line;
mod sequence;
#[cfg(test)]
mod tests;

use line::PlainLine;
use sequence::{Parser, Step};

/// Takes the escape sequences out of what a terminal printed.
///
/// The text holds no control characters but newline and tab. A line that is
/// rewritten, as progress bars and line editors do it, is told once, as it
/// looked in the end. Programs that paint a whole screen give the words that
/// they painted, in that order; the screen itself tells more.
///
/// Bytes may come in any pieces. Memory is bounded, whatever they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plain {
    /// The beginning of a character whose end has not come yet.
    partial: Vec<u8>,
    parser: Parser,
    line: PlainLine,
}

impl Plain {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The terminal is so wide from now on: longer lines are continued below,
    /// and what goes back to the beginning goes back to there.
    pub(crate) fn set_columns(&mut self, columns: u16) {
        self.line.set_columns(columns.into());
    }

    /// Takes bytes, and adds the lines that they complete to the text.
    pub(crate) fn feed(&mut self, bytes: &[u8], text: &mut String) {
        if self.partial.is_empty() {
            return self.decode(bytes, text);
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        self.decode(&joined, text);
    }

    /// Adds the line that is not complete, so far as it is not told yet.
    ///
    /// What is told cannot be taken back: if the line is rewritten later, it is
    /// told again, as a new line.
    pub(crate) fn flush(&mut self, text: &mut String) {
        self.line.settle(text);
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String) {
        while let Err(error) = str::from_utf8(bytes) {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            self.take(str::from_utf8(valid).unwrap_or_default(), text);
            let Some(invalid) = error.error_len() else {
                self.partial = rest.to_vec();
                return;
            };
            self.take("\u{fffd}", text);
            bytes = &rest[invalid..];
        }
        self.take(str::from_utf8(bytes).unwrap_or_default(), text);
    }

    fn take(&mut self, characters: &str, text: &mut String) {
        for character in characters.chars() {
            match self.parser.step(character) {
                Step::Nothing => {}
                Step::Character(character) => self.line.put(character, text),
                Step::Control(control) => self.line.control(control, text),
                Step::Edit { kind, count } => self.line.edit(kind, count.into(), text),
            }
        }
    }
}
