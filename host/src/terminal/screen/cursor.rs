use super::{charset::Charset, style::Style};

/// Where the next character goes, and how it will look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) row: usize,
    pub(super) column: usize,
    /// The last column is written: the next character begins a new row.
    pub(super) pending_wrap: bool,
    pub(super) style: Style,
    /// Rows are counted from the top of the scrolling region, and the cursor
    /// cannot leave it.
    pub(super) origin_mode: bool,
    charsets: [Charset; 2],
    shifted: bool,
}

impl Cursor {
    /// At the same place, with nothing said about what it writes.
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
