use std::ops::Range;

/// The part of the screen that scrolls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Margins {
    /// The rows between the top and the bottom margin (DECSTBM).
    pub(super) rows: Range<usize>,
    /// The columns between the left and the right margin (DECSLRM). All columns
    /// unless the mode is set.
    pub(super) columns: Range<usize>,
    /// `CSI s` sets the left and the right margin (DECLRMM).
    pub(super) left_right_mode: bool,
}

impl Margins {
    /// Returns the margins of a whole screen.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self {
            rows: 0..rows,
            columns: 0..columns,
            left_right_mode: false,
        }
    }

    pub(super) fn contains(&self, row: usize, column: usize) -> bool {
        self.rows.contains(&row) && self.columns.contains(&column)
    }

    /// Returns the last column between the margins.
    pub(super) fn last_column(&self) -> usize {
        self.columns.end.saturating_sub(1)
    }
}

/// Returns the range that a program sets by its first and last number, counted
/// from 1. `None` if it has fewer than two rows or columns.
pub(super) fn range(first: usize, last: usize, length: usize) -> Option<Range<usize>> {
    let end = match last {
        0 => length,
        last => last.min(length),
    };
    let range = first.saturating_sub(1)..end;
    (range.len() >= 2).then_some(range)
}
