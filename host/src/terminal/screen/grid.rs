use std::ops::Range;

use super::{cursor::Cursor, row::Row, style::Colour};

/// One of the two screens of a terminal.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) rows: Vec<Row>,
    pub(super) columns: usize,
    /// The cursor that the program saved.
    pub(super) saved: Cursor,
    /// Whether bytes were lost that may have changed this screen.
    pub(super) incomplete: bool,
}

impl Grid {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self {
            rows: vec![Row::default(); rows],
            columns,
            saved: Cursor::default(),
            incomplete: false,
        }
    }

    pub(super) fn row(&mut self, row: usize) -> Option<&mut Row> {
        self.rows.get_mut(row)
    }

    pub(super) fn clear(&mut self, background: Colour) {
        for row in &mut self.rows {
            row.clear(background);
        }
        self.incomplete = false;
    }

    /// Moves the rows of a region up. Passes each removed row to `visit`.
    pub(super) fn scroll_up(
        &mut self,
        region: Range<usize>,
        count: usize,
        background: Colour,
        mut visit: impl FnMut(&Row),
    ) {
        let Some(rows) = self.rows.get_mut(region) else {
            return;
        };
        let count = count.min(rows.len());
        let (removed, _) = rows.split_at_mut(count);
        for row in removed {
            visit(row);
            row.clear(background);
        }
        rows.rotate_left(count);
    }

    pub(super) fn scroll_down(&mut self, region: Range<usize>, count: usize, background: Colour) {
        let Some(rows) = self.rows.get_mut(region) else {
            return;
        };
        let count = count.min(rows.len());
        rows.rotate_right(count);
        for row in rows.iter_mut().take(count) {
            row.clear(background);
        }
    }

    /// Moves the cells of some columns up, within some rows.
    pub(super) fn scroll_columns_up(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        count: usize,
        background: Colour,
    ) {
        let Some(rows) = self.rows.get_mut(rows) else {
            return;
        };
        let kept = rows.len().saturating_sub(count);
        for row in 0..kept {
            swap_columns(rows, row, count, columns.clone());
        }
        for row in rows.iter_mut().skip(kept) {
            row.erase(columns.clone(), background, self.columns);
        }
    }

    /// Moves the cells of some columns down, within some rows.
    pub(super) fn scroll_columns_down(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        count: usize,
        background: Colour,
    ) {
        let Some(rows) = self.rows.get_mut(rows) else {
            return;
        };
        let kept = rows.len().saturating_sub(count);
        for row in (0..kept).rev() {
            swap_columns(rows, row, count, columns.clone());
        }
        for row in rows.iter_mut().take(count) {
            row.erase(columns.clone(), background, self.columns);
        }
    }

    /// Changes the size. Rows are cut, never rewrapped: programs redraw after a
    /// resize. Rows below `last_kept` are removed first, then rows at the top, which
    /// are passed to `visit`.
    ///
    /// Returns how many rows were removed at the top.
    pub(super) fn resize(
        &mut self,
        columns: usize,
        rows: usize,
        last_kept: usize,
        visit: impl FnMut(&Row),
    ) -> usize {
        let below = self.rows.len().saturating_sub(last_kept.saturating_add(1));
        let excess = self.rows.len().saturating_sub(rows);
        self.rows
            .truncate(self.rows.len().saturating_sub(excess.min(below)));
        let above = self.rows.len().saturating_sub(rows);
        self.rows.drain(..above).as_slice().iter().for_each(visit);
        for row in &mut self.rows {
            row.resize(self.columns, columns);
        }
        self.rows.resize_with(rows, Row::default);
        self.columns = columns;
        above
    }
}

/// Exchanges the cells of some columns of a row with those of a row below it.
fn swap_columns(rows: &mut [Row], row: usize, distance: usize, columns: Range<usize>) {
    let (above, below) = rows.split_at_mut(row.saturating_add(distance));
    if let (Some(upper), Some(lower)) = (above.get_mut(row), below.first_mut()) {
        upper.swap(lower, columns);
    }
}
