use std::ops::Range;

/// The most lines that a text may have. The table of them takes four bytes for
/// each.
const MAX_LINES: usize = 1 << 24;

/// One line: what is in it, and whether a newline ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextLine<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) ended: bool,
}

impl<'a> TextLine<'a> {
    /// The first line of a text, and what follows it.
    pub(super) fn split_off(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        if text.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', text);
        let (line, rest) = text.split_at(end.unwrap_or(text.len()));
        let line = Self {
            text: line,
            ended: end.is_some(),
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

/// A text, and where its lines begin.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// Where each line begins, and where the last one ends.
    bounds: Vec<u32>,
}

impl<'a> Lines<'a> {
    /// `None` if there are too many lines, or more than 4 GiB.
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

    /// The text of several lines. Those that do not exist have none.
    pub(crate) fn bytes(&self, lines: Range<usize>) -> &'a [u8] {
        let bound = |index: usize| {
            let bound = self.bounds.get(index).copied();
            bound.map_or(self.text.len(), |bound| bound as usize)
        };
        self.text
            .get(bound(lines.start)..bound(lines.end))
            .unwrap_or_default()
    }

    /// Whether a newline ends the text, or there is no text.
    pub(crate) fn is_ended(&self) -> bool {
        self.text.last().is_none_or(|last| *last == b'\n')
    }
}
