use crate::error::Error;

/// The size of a terminal. The default is 120 columns by 30 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TerminalSize {
    /// Characters in a row.
    pub columns: u16,
    /// Rows on the screen.
    pub rows: u16,
}

impl TerminalSize {
    /// The maximum number of columns, and of rows.
    pub const MAX: u16 = 1000;

    /// Creates a size.
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

    /// Creates the nearest valid size.
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
