use super::{charset::Charset, style::Style};

/// The position, style and character set of the next character.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) row: usize,
    pub(super) column: usize,
    /// The last column was written: the next character wraps to a new row.
    pub(super) pending_wrap: bool,
    pub(super) style: Style,
    /// Rows count from the top of the scrolling region, which the cursor cannot
    /// leave (DECOM).
    pub(super) origin_mode: bool,
    charsets: [Charset; 2],
    shifted: bool,
}

impl Cursor {
    /// Returns a cursor at the same position with all else reset.
    pub(super) fn with_default_attributes(&self) -> Self {
        Self {
            row: self.row,
            column: self.column,
            ..Self::default()
        }
    }

    pub(super) fn charset(&self) -> Charset {
        self.charsets[usize::from(self.shifted)]
    }

    pub(super) fn designate(&mut self, second: bool, charset: Charset) {
        self.charsets[usize::from(second)] = charset;
    }

    pub(super) fn shift(&mut self, second: bool) {
        self.shifted = second;
    }
}
