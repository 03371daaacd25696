use std::ops::Range;

/// The maximum number of lines of a text. The index takes four bytes for each.
const MAX_LINES: usize = 1 << 24;

/// A line, and whether it ends with a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextLine<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) has_newline: bool,
}

impl<'a> TextLine<'a> {
    /// Splits the first line off a text. Returns it and the rest.
    pub(super) fn split_off(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        if text.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', text);
        let (line, rest) = text.split_at(end.unwrap_or(text.len()));
        let line = Self {
            text: line,
            has_newline: end.is_some(),
        };
        Some((line, rest.strip_prefix(b"\n").unwrap_or(rest)))
    }

    pub(super) fn without_carriage_return(self) -> Self {
        Self {
            text: self.text.strip_suffix(b"\r").unwrap_or(self.text),
            ..self
        }
    }
}

/// A text with an index of its lines.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// The start of each line, and the end of the last one.
    bounds: Vec<u32>,
}

impl<'a> Lines<'a> {
    /// Splits a text, or returns `None` if it has too many lines or more than 4
    /// GiB.
    pub(crate) fn split(text: &'a [u8]) -> Option<Self> {
        let end = u32::try_from(text.len()).ok()?;
        let mut bounds = vec![0];
        for newline in memchr::memchr_iter(b'\n', text) {
            if bounds.len() > MAX_LINES {
                return None;
            }
            bounds.push(u32::try_from(newline + 1).ok()?);
        }
        if bounds.last() != Some(&end) {
            bounds.push(end);
        }
        Some(Self { text, bounds })
    }

    pub(crate) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    pub(crate) fn get(&self, index: usize) -> Option<TextLine<'a>> {
        let bytes = self.bytes(index..index.checked_add(1)?);
        TextLine::split_off(bytes).map(|(line, _)| line)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = TextLine<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the text of several lines. Ignores indices beyond the end.
    pub(crate) fn bytes(&self, lines: Range<usize>) -> &'a [u8] {
        let bound = |index: usize| {
            let bound = self.bounds.get(index).copied();
            bound.map_or(self.text.len(), |bound| bound as usize)
        };
        self.text
            .get(bound(lines.start)..bound(lines.end))
            .unwrap_or_default()
    }

    /// Returns whether the text ends with a newline or is empty.
    pub(crate) fn ends_with_newline(&self) -> bool {
        self.text.last().is_none_or(|last| *last == b'\n')
    }
}
