use super::{
    error::{PatchError, PatchErrorKind},
    line::TextLine,
};

/// Reads a patch line by line, and counts.
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

    /// The number of the current line, from 1.
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

    /// Whether the current line begins with this.
    pub(super) fn at(&self, start: &[u8]) -> bool {
        self.current
            .is_some_and(|line| line.text.starts_with(start))
    }

    /// Whether the next line begins with this.
    pub(super) fn before(&self, start: &[u8]) -> bool {
        self.rest.starts_with(start)
    }

    /// What is wrong with the current line.
    pub(super) fn error(&self, kind: PatchErrorKind) -> PatchError {
        PatchError {
            line: self.number,
            kind,
        }
    }
}
