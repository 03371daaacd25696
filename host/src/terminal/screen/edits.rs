use std::ops::Range;

use super::{display::Display, protection::Erasure, style::Colour};

/// Operations that move and erase existing cells.
impl Display {
    /// Moves the rows between the margins up (SU). Whole rows that leave at the top
    /// of the screen go to the scrollback.
    pub(super) fn scroll_up(&mut self, count: usize) {
        let rows = self.margins.rows.clone();
        let to_scrollback = rows.start == 0 && !self.modes.alternate_screen;
        self.move_up(rows, count, to_scrollback);
    }

    /// Moves the rows between the margins down (SD).
    pub(super) fn scroll_down(&mut self, count: usize) {
        self.move_down(self.margins.rows.clone(), count);
    }

    /// Moves what is between the left and the right margin.
    fn move_up(&mut self, rows: Range<usize>, count: usize, to_scrollback: bool) {
        let (background, columns) = (self.background(), self.margins.columns.clone());
        if columns.len() == self.columns() {
            let scrollback = &mut self.scrollback;
            self.active.scroll_up(rows, count, background, |row| {
                if to_scrollback {
                    scrollback.push(|| row.text());
                }
            });
        } else if self.can_afford_part(&rows, &columns) {
            let grid = &mut self.active;
            grid.scroll_columns_up(rows, columns, count, background);
        }
    }

    fn move_down(&mut self, rows: Range<usize>, count: usize) {
        let (background, columns) = (self.background(), self.margins.columns.clone());
        if columns.len() == self.columns() {
            self.active.scroll_down(rows, count, background);
        } else if self.can_afford_part(&rows, &columns) {
            let grid = &mut self.active;
            grid.scroll_columns_down(rows, columns, count, background);
        }
    }

    /// Returns the rows from the cursor to the bottom margin, or `None` if the
    /// cursor is not between the margins.
    fn rows_below(&self) -> Option<Range<usize>> {
        let (row, column) = (self.cursor.row, self.cursor.column);
        let is_inside = self.margins.contains(row, column);
        is_inside.then_some(row..self.margins.rows.end)
    }

    pub(super) fn insert_rows(&mut self, count: usize) {
        if let Some(rows) = self.rows_below() {
            self.move_down(rows, count);
            self.carriage_return();
        }
    }

    pub(super) fn delete_rows(&mut self, count: usize) {
        if let Some(rows) = self.rows_below() {
            self.move_up(rows, count, false);
            self.carriage_return();
        }
    }

    pub(super) fn insert_blanks(&mut self, count: usize) {
        self.shift_right(count);
        self.cursor.pending_wrap = false;
    }

    /// Moves the cells from the cursor to the right margin to the right. Only
    /// insert mode needs it for text, which is fastest without it.
    #[inline(never)]
    pub(super) fn shift_right(&mut self, count: usize) {
        let (column, background, columns) = self.cursor_context();
        let range = column..self.margins.columns.end;
        if !self.margins.columns.contains(&column) {
            return;
        }
        if let Some(row) = self.active.row(self.cursor.row) {
            row.insert(range, count, background, columns);
        }
    }

    pub(super) fn delete_characters(&mut self, count: usize) {
        let (column, background, columns) = self.cursor_context();
        let range = column..self.margins.columns.end;
        if !self.margins.columns.contains(&column) {
            return;
        }
        if let Some(row) = self.active.row(self.cursor.row) {
            row.delete(range, count, background, columns);
        }
        self.cursor.pending_wrap = false;
    }

    pub(super) fn erase_characters(&mut self, count: usize) {
        let (column, ..) = self.cursor_context();
        self.erase_in_row(column..column.saturating_add(count), Erasure::All);
    }

    /// Erases in the cursor's row (EL, DECSEL).
    pub(super) fn erase_row(&mut self, which: usize, erasure: Erasure) {
        let column = self.cursor.column;
        match which {
            0 => self.erase_in_row(column..usize::MAX, erasure),
            1 => self.erase_in_row(0..column.saturating_add(1), erasure),
            2 => self.erase_in_row(0..usize::MAX, erasure),
            _ => {}
        }
    }

    /// Erases on the screen (ED, DECSED), or the scrollback.
    pub(super) fn erase_display(&mut self, which: usize, erasure: Erasure) {
        let (row, column) = (self.cursor.row, self.cursor.column);
        match which {
            0 if (row, column) == (0, 0) => self.erase_all(erasure),
            0 => {
                self.erase_in_row(column..usize::MAX, erasure);
                self.erase_rows(row.saturating_add(1)..self.rows(), erasure);
            }
            1 => {
                self.erase_in_row(0..column.saturating_add(1), erasure);
                self.erase_rows(0..row, erasure);
            }
            2 => self.erase_all(erasure),
            3 => self.scrollback.clear(),
            _ => {}
        }
    }

    fn erase_in_row(&mut self, range: Range<usize>, erasure: Erasure) {
        let (_, background, columns) = self.cursor_context();
        let range = range.start..range.end.min(columns);
        if let Some(row) = self.active.row(self.cursor.row) {
            match erasure {
                Erasure::All => row.erase(range, background, columns),
                Erasure::Unprotected => row.erase_unprotected(range, background),
            }
        }
        self.cursor.pending_wrap = false;
    }

    fn erase_rows(&mut self, range: Range<usize>, erasure: Erasure) {
        let (_, background, columns) = self.cursor_context();
        if erasure == Erasure::Unprotected && !self.can_afford_part(&range, &(0..columns)) {
            return;
        }
        for row in self.active.rows.get_mut(range).into_iter().flatten() {
            match erasure {
                Erasure::All => row.clear(background),
                Erasure::Unprotected => row.erase_unprotected(0..columns, background),
            }
        }
    }

    pub(super) fn erase_all(&mut self, erasure: Erasure) {
        match erasure {
            Erasure::All => self.active.clear(self.background()),
            Erasure::Unprotected => self.erase_rows(0..self.rows(), erasure),
        }
        self.cursor.pending_wrap = false;
    }

    fn cursor_context(&self) -> (usize, Colour, usize) {
        (self.cursor.column, self.background(), self.columns())
    }
}
