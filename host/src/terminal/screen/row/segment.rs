use std::ops::Range;

use super::Row;
use crate::terminal::screen::{
    cell::{Cell, Part},
    cursor::Pen,
    style::Colour,
    work,
};

/// Operations on adjacent columns of a row. `columns` is the width of the screen.
impl Row {
    /// Returns how many cells an operation on some columns changes at most.
    pub(in crate::terminal::screen) fn cost(&self, range: &Range<usize>) -> usize {
        let before = range.start.saturating_sub(self.cells.len());
        range.len().saturating_add(before)
    }

    /// Fills columns with one character of one column.
    pub(in crate::terminal::screen) fn fill(
        &mut self,
        range: Range<usize>,
        character: char,
        pen: Pen,
    ) {
        let cell = Cell::new(character, pen, Part::Whole);
        self.blank_straddling(range.start);
        self.blank_straddling(range.end);
        self.fill_to(range.start);
        work::count(range.len());
        let stored = range.end.min(self.cells.len());
        if let Some(cells) = self.cells.get_mut(range.start..stored) {
            cells.fill(cell);
        }
        if stored < range.end {
            self.cells.resize(range.end, cell);
        }
    }

    /// Blanks columns.
    pub(in crate::terminal::screen) fn erase(
        &mut self,
        range: Range<usize>,
        background: Colour,
        columns: usize,
    ) {
        let Range { start, end } = range;
        self.blank_straddling(start);
        if end >= columns {
            if self.tail_colour != background {
                self.fill_to(start);
            }
            self.cells.truncate(start);
            self.tail_colour = background;
            return;
        }
        self.blank_straddling(end);
        if self.tail_colour != background {
            self.fill_to(end);
        }
        let end = end.min(self.cells.len());
        if let Some(erased) = self.cells.get_mut(start..end) {
            work::count(erased.len());
            erased.fill(Cell::blank(background));
        }
    }

    /// Blanks the columns that are not protected.
    pub(in crate::terminal::screen) fn erase_unprotected(
        &mut self,
        range: Range<usize>,
        background: Colour,
    ) {
        for edge in [range.start, range.end] {
            let cell = self.cells.get(edge);
            if cell.is_some_and(|cell| !cell.is_protected()) {
                self.blank_straddling(edge);
            }
        }
        if self.tail_colour != background {
            self.fill_to(range.end);
        }
        let end = range.end.min(self.cells.len());
        let cells = self.cells.get_mut(range.start..end).unwrap_or_default();
        work::count(cells.len());
        for cell in cells.iter_mut().filter(|cell| !cell.is_protected()) {
            *cell = Cell::blank(background);
        }
    }

    /// Inserts blanks at the start of a range. The cells there move to the right,
    /// up to the end of the range.
    pub(in crate::terminal::screen) fn insert(
        &mut self,
        range: Range<usize>,
        count: usize,
        background: Colour,
        columns: usize,
    ) {
        let Range { start, end } = range;
        if count >= range.len() {
            return self.erase(range, background, columns);
        }
        if end < columns {
            self.blank_straddling(end.saturating_sub(count));
            if let Some(cells) = self.isolate(range) {
                cells.rotate_right(count);
                blank(cells, 0..count, background);
            }
            return;
        }
        self.blank_straddling(start);
        if self.tail_colour != background {
            self.fill_to(columns);
        }
        if start < self.cells.len() {
            let kept = columns.saturating_sub(count);
            self.blank_straddling(kept);
            self.cells.truncate(kept);
            let blanks = std::iter::repeat_n(Cell::blank(background), count);
            self.cells.splice(start..start, blanks);
            work::count(self.cells.len().saturating_sub(start));
        }
    }

    /// Deletes columns at the start of a range. The cells right of them move to the
    /// left, up to the end of the range.
    pub(in crate::terminal::screen) fn delete(
        &mut self,
        range: Range<usize>,
        count: usize,
        background: Colour,
        columns: usize,
    ) {
        let Range { start, end } = range;
        if count >= range.len() {
            return self.erase(range, background, columns);
        }
        let after = start.saturating_add(count);
        self.blank_straddling(after);
        if end < columns {
            if let Some(cells) = self.isolate(range) {
                cells.rotate_left(count);
                let kept = cells.len().saturating_sub(count);
                blank(cells, kept..usize::MAX, background);
            }
            return;
        }
        self.blank_straddling(start);
        if self.tail_colour != background {
            self.fill_to(columns);
        }
        let after = after.min(self.cells.len());
        if start < after {
            work::count(self.cells.len().saturating_sub(start));
            self.cells.drain(start..after);
        }
        if self.tail_colour != background {
            let blank = Cell::blank(background);
            self.cells.resize(columns, blank);
        }
    }

    /// Exchanges columns with those of another row.
    pub(in crate::terminal::screen) fn swap(&mut self, other: &mut Self, range: Range<usize>) {
        if let (Some(cells), Some(others)) = (self.isolate(range.clone()), other.isolate(range)) {
            cells.swap_with_slice(others);
        }
    }

    /// Returns the cells of a range. Stores them, and blanks wide characters that
    /// straddle its edges.
    fn isolate(&mut self, range: Range<usize>) -> Option<&mut [Cell]> {
        self.blank_straddling(range.start);
        self.blank_straddling(range.end);
        self.fill_to(range.end);
        work::count(range.len());
        self.cells.get_mut(range)
    }
}

/// Blanks those cells of a range that exist.
fn blank(cells: &mut [Cell], range: Range<usize>, background: Colour) {
    let end = range.end.min(cells.len());
    if let Some(cells) = cells.get_mut(range.start..end) {
        cells.fill(Cell::blank(background));
    }
}
