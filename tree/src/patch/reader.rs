use super::{
    error::{PatchError, PatchErrorKind},
    line::TextLine,
};

/// Reads a patch line by line, and counts the lines.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    current: Option<TextLine<'a>>,
    rest: &'a [u8],
    number: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut reader = Self {
            current: None,
            rest: text,
            number: 0,
        };
        reader.advance();
        reader
    }

    /// Returns the number of the current line, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn current(&self) -> Option<TextLine<'a>> {
        self.current
    }

    pub(super) fn advance(&mut self) {
        self.number += 1;
        self.current = TextLine::split_off(self.rest).map(|(line, rest)| {
            self.rest = rest;
            line
        });
    }

    /// Returns whether the current line starts with this.
    pub(super) fn starts_with(&self, start: &[u8]) -> bool {
        self.current
            .is_some_and(|line| line.text.starts_with(start))
    }

    /// Returns whether the next line starts with this.
    pub(super) fn next_starts_with(&self, start: &[u8]) -> bool {
        self.rest.starts_with(start)
    }

    /// Returns an error for the current line.
    pub(super) fn error(&self, kind: PatchErrorKind) -> PatchError {
        PatchError {
            line: self.number,
            kind,
        }
    }
}
