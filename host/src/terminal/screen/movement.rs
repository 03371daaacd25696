use std::ops::Range;

use super::{display::Display, margins};

/// Moving the cursor. In origin mode (DECOM), positions count from the margins,
/// which the cursor cannot leave.
impl Display {
    /// Moves a row down; scrolls at the bottom margin (IND).
    pub(super) fn index(&mut self) {
        let is_last = self.cursor.row.saturating_add(1) == self.margins.rows.end;
        if is_last && self.margins.columns.contains(&self.cursor.column) {
            self.scroll_up(1);
        } else {
            self.down(1);
        }
        self.cursor.pending_wrap = false;
    }

    /// Moves a row up; scrolls at the top margin (RI).
    pub(super) fn reverse_index(&mut self) {
        let is_first = self.cursor.row == self.margins.rows.start;
        if is_first && self.margins.columns.contains(&self.cursor.column) {
            self.scroll_down(1);
        } else {
            self.up(1);
        }
        self.cursor.pending_wrap = false;
    }

    pub(super) fn line_feed(&mut self) {
        self.index();
        if self.newline_mode {
            self.carriage_return();
        }
    }

    /// Moves to the left margin, or to the first column from left of it.
    pub(super) fn carriage_return(&mut self) {
        let left = self.margins.columns.start;
        let is_inside = self.cursor.origin_mode || self.cursor.column >= left;
        self.cursor.column = if is_inside { left } else { 0 };
        self.cursor.pending_wrap = false;
    }

    /// Moves to a column.
    pub(super) fn move_to_column(&mut self, column: usize) {
        let columns = self.addressable_columns();
        let column = columns.start.saturating_add(column);
        self.cursor.column = column.min(columns.end.saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    /// Moves to a row.
    pub(super) fn move_to_row(&mut self, row: usize) {
        let rows = self.addressable_rows();
        let row = rows.start.saturating_add(row);
        self.cursor.row = row.min(rows.end.saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    pub(super) fn move_home(&mut self) {
        self.move_to_row(0);
        self.move_to_column(0);
    }

    /// Returns the cursor's row, as positions count.
    pub(super) fn reported_row(&self) -> usize {
        let first = self.addressable_rows().start;
        self.cursor.row.saturating_sub(first)
    }

    /// Returns the cursor's column, as positions count.
    pub(super) fn reported_column(&self) -> usize {
        let first = self.addressable_columns().start;
        self.cursor.column.saturating_sub(first)
    }

    /// Returns the rows that a program can address.
    pub(super) fn addressable_rows(&self) -> Range<usize> {
        match self.cursor.origin_mode {
            true => self.margins.rows.clone(),
            false => 0..self.rows(),
        }
    }

    /// Returns the columns that a program can address.
    pub(super) fn addressable_columns(&self) -> Range<usize> {
        match self.cursor.origin_mode {
            true => self.margins.columns.clone(),
            false => 0..self.columns(),
        }
    }

    /// Moves up, but not across the top margin.
    pub(super) fn up(&mut self, count: usize) {
        let top = match self.cursor.row >= self.margins.rows.start {
            true => self.margins.rows.start,
            false => 0,
        };
        self.cursor.row = self.cursor.row.saturating_sub(count).max(top);
        self.cursor.pending_wrap = false;
    }

    /// Moves down, but not across the bottom margin.
    pub(super) fn down(&mut self, count: usize) {
        let end = match self.cursor.row < self.margins.rows.end {
            true => self.margins.rows.end,
            false => self.rows(),
        };
        let row = self.cursor.row.saturating_add(count);
        self.cursor.row = row.min(end.saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    /// Moves right, but not across the right margin.
    pub(super) fn forward(&mut self, count: usize) {
        let column = self.cursor.column.saturating_add(count);
        self.cursor.column = column.min(self.right_edge().saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    /// Moves left, but not across the left margin.
    pub(super) fn back(&mut self, count: usize) {
        let left = match self.cursor.column >= self.margins.columns.start {
            true => self.margins.columns.start,
            false => 0,
        };
        self.cursor.column = self.cursor.column.saturating_sub(count).max(left);
        self.cursor.pending_wrap = false;
    }

    /// Moves to a tab stop on the right. A row that is full stays so: the next
    /// character still wraps.
    pub(super) fn tab_forward(&mut self, count: usize) {
        let stop = self.tabs.next_stop(self.cursor.column, count);
        self.cursor.column = stop.min(self.margins.last_column());
    }

    /// Moves to a tab stop on the left.
    pub(super) fn tab_back(&mut self, count: usize) {
        let stop = self.tabs.previous_stop(self.cursor.column, count);
        self.cursor.column = stop.max(self.addressable_columns().start);
    }

    /// Returns the column behind the last one that text reaches before it wraps.
    #[inline]
    pub(super) fn right_edge(&self) -> usize {
        match self.cursor.column < self.margins.columns.end {
            true => self.margins.columns.end,
            false => self.columns(),
        }
    }

    /// Sets the top and the bottom margin (DECSTBM).
    pub(super) fn set_row_margins(&mut self, first: usize, last: usize) {
        if let Some(rows) = margins::range(first, last, self.rows()) {
            self.margins.rows = rows;
            self.move_home();
        }
    }

    /// Sets the left and the right margin (DECSLRM).
    pub(super) fn set_column_margins(&mut self, first: usize, last: usize) {
        if let Some(columns) = margins::range(first, last, self.columns()) {
            self.margins.columns = columns;
            self.move_home();
        }
    }

    /// Allows left and right margins, or removes them (DECLRMM).
    pub(super) fn set_left_right_mode(&mut self, on: bool) {
        self.margins.left_right_mode = on;
        if !on {
            self.margins.columns = 0..self.columns();
        }
    }
}
