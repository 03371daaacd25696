use crate::error::Error;

/// How many columns and rows a terminal has: 120 by 30 unless told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters in a row.
    pub columns: u16,
    /// Rows on the screen.
    pub rows: u16,
}

impl TerminalSize {
    /// The most columns, and the most rows, that a terminal can have.
    pub const MAX: u16 = 1000;

    /// A size.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless both numbers are from 1 to [`Self::MAX`].
    pub fn new(columns: u16, rows: u16) -> Result<Self, Error> {
        let size = Self { columns, rows };
        if size == Self::clamped(columns, rows) {
            return Ok(size);
        }
        Err(Error::Invalid(format!(
            "a terminal of {columns} columns and {rows} rows: both must be from 1 to {}",
            Self::MAX
        )))
    }

    /// The possible size that is nearest.
    pub fn clamped(columns: u16, rows: u16) -> Self {
        Self {
            columns: columns.clamp(1, Self::MAX),
            rows: rows.clamp(1, Self::MAX),
        }
    }
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self {
            columns: 120,
            rows: 30,
        }
    }
}
