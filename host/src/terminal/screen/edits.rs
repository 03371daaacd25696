use std::ops::Range;

use super::{display::Display, style::Colour};

/// Operations that move and erase existing cells.
impl Display {
    pub(super) fn scroll_up(&mut self, region: Range<usize>, count: usize) {
        let background = self.background();
        let to_scrollback = region.start == 0 && !self.modes.alternate_screen;
        let scrollback = &mut self.scrollback;
        self.active.scroll_up(region, count, background, |row| {
            if to_scrollback {
                scrollback.push(|| row.text());
            }
        });
    }

    pub(super) fn scroll_down(&mut self, region: Range<usize>, count: usize) {
        let background = self.background();
        self.active.scroll_down(region, count, background);
    }

    /// Returns the rows from the cursor to the end of the region, or `None` if the
    /// cursor is outside of it.
    fn region_below(&self) -> Option<Range<usize>> {
        let row = self.cursor.row;
        self.region.contains(&row).then_some(row..self.region.end)
    }

    pub(super) fn insert_rows(&mut self, count: usize) {
        if let Some(region) = self.region_below() {
            self.scroll_down(region, count);
            self.move_to_column(0);
        }
    }

    pub(super) fn delete_rows(&mut self, count: usize) {
        if let Some(region) = self.region_below() {
            let background = self.background();
            self.active.scroll_up(region, count, background, |_| ());
            self.move_to_column(0);
        }
    }

    pub(super) fn insert_blanks(&mut self, count: usize) {
        let (column, background, columns) = self.cursor_context();
        if let Some(row) = self.active.row(self.cursor.row) {
            row.insert(column, count, background, columns);
        }
    }

    pub(super) fn delete_characters(&mut self, count: usize) {
        let (column, background, columns) = self.cursor_context();
        if let Some(row) = self.active.row(self.cursor.row) {
            row.delete(column, count, background, columns);
        }
    }

    pub(super) fn erase_characters(&mut self, count: usize) {
        let (column, ..) = self.cursor_context();
        self.erase_in_row(column..column.saturating_add(count));
    }

    pub(super) fn erase_in_row(&mut self, range: Range<usize>) {
        let (_, background, columns) = self.cursor_context();
        let end = range.end.min(columns);
        if let Some(row) = self.active.row(self.cursor.row) {
            row.erase(range.start, end, background, columns);
        }
        self.cursor.pending_wrap = false;
    }

    fn cursor_context(&self) -> (usize, Colour, usize) {
        (self.cursor.column, self.background(), self.columns())
    }

    pub(super) fn erase_rows(&mut self, range: Range<usize>) {
        let background = self.background();
        for row in self.active.rows.get_mut(range).into_iter().flatten() {
            row.clear(background);
        }
    }

    pub(super) fn erase_all(&mut self) {
        let background = self.background();
        self.active.clear(background);
    }
}
