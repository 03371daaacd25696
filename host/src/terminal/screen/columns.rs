use std::ops::Range;

use super::{display::Display, margins::Margins, row::Row, style::Colour};

/// Inserting and deleting columns of all rows between the margins.
impl Display {
    /// Inserts columns at the cursor (DECIC).
    pub(super) fn insert_columns(&mut self, count: usize) {
        self.move_right_from(self.cursor.column, count);
    }

    /// Deletes columns at the cursor (DECDC).
    pub(super) fn delete_columns(&mut self, count: usize) {
        self.move_left_from(self.cursor.column, count);
    }

    /// Moves everything between the margins to the left (SL).
    pub(super) fn scroll_left(&mut self, count: usize) {
        self.move_left_from(self.margins.columns.start, count);
    }

    /// Moves everything between the margins to the right (SR).
    pub(super) fn scroll_right(&mut self, count: usize) {
        self.move_right_from(self.margins.columns.start, count);
    }

    /// Moves a column to the left; scrolls at the left margin (DECBI).
    pub(super) fn back_index(&mut self) {
        match self.cursor.column == self.margins.columns.start {
            true => self.scroll_right(1),
            false => self.back(1),
        }
    }

    /// Moves a column to the right; scrolls at the right margin (DECFI).
    pub(super) fn forward_index(&mut self) {
        match self.cursor.column == self.margins.last_column() {
            true => self.scroll_left(1),
            false => self.forward(1),
        }
    }

    fn move_right_from(&mut self, column: usize, count: usize) {
        self.change_from(column, |row, range, background, columns| {
            row.insert(range, count, background, columns);
        });
    }

    fn move_left_from(&mut self, column: usize, count: usize) {
        self.change_from(column, |row, range, background, columns| {
            row.delete(range, count, background, columns);
        });
    }

    /// Changes the cells from a column to the right margin in all rows between the
    /// margins. `change` gets their range, a background and the width of the screen.
    fn change_from(
        &mut self,
        column: usize,
        change: impl Fn(&mut Row, Range<usize>, Colour, usize),
    ) {
        let (background, columns) = (self.background(), self.columns());
        let end = self.margins.columns.end;
        if self.can_move_columns() {
            let rows = self.active.rows.get_mut(self.margins.rows.clone());
            for row in rows.into_iter().flatten() {
                change(row, column..end, background, columns);
            }
        }
    }

    /// Returns whether the cursor is between the margins, and pays.
    fn can_move_columns(&mut self) -> bool {
        let Margins { rows, columns, .. } = self.margins.clone();
        let is_inside = self.margins.contains(self.cursor.row, self.cursor.column);
        is_inside && self.can_afford_part(&rows, &columns)
    }
}
