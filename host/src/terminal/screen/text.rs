use unicode_width::UnicodeWidthChar;
use vmcell_tree::is_hidden;

use super::display::Display;

/// The character that shows where a word may be divided. Terminals always show it.
const SOFT_HYPHEN: char = '\u{ad}';

/// Writing text.
impl Display {
    /// Writes many ASCII characters at a time, the most frequent case.
    pub(super) fn write_ascii(&mut self, mut text: &[u8]) {
        if !self.cursor.is_ascii() {
            return text.iter().for_each(|byte| self.write(char::from(*byte)));
        }
        while let Some((&last, _)) = text.split_last() {
            if !self.make_room(1) {
                return;
            }
            let (now, rest) = text.split_at(self.room_for_run().min(text.len()));
            self.insert_if_set(now.len());
            let (column, pen) = (self.cursor.column, self.cursor.pen());
            if let Some(row) = self.active.row(self.cursor.row) {
                row.put_ascii(column, now, pen);
            }
            self.advance(now.len());
            text = rest;
            self.last_char = Some(char::from(last));
        }
    }

    pub(super) fn write(&mut self, next: char) {
        let character = self.cursor.map(next);
        let Some(width) = width(character) else {
            return;
        };
        if width == 0 {
            return self.add_mark(character);
        }
        self.last_char = Some(next);
        if self.make_room(width) {
            self.insert_if_set(width);
            let (column, pen) = (self.cursor.column, self.cursor.pen());
            if let Some(row) = self.active.row(self.cursor.row) {
                row.put(column, character, width > 1, pen);
            }
            self.advance(width);
        }
    }

    /// Repeats the character that was written last, as often as fits into a row at a
    /// time (REP).
    pub(super) fn repeat(&mut self, last: char, count: usize) {
        let character = self.cursor.charset().map(last);
        let width = match width(character) {
            None | Some(0) => return,
            Some(width) => width,
        };
        let mut missing = self.without_hidden_rows(count, width);
        let changes = if self.insert_mode { 2 } else { 1 };
        let columns = missing.saturating_mul(width);
        if !self.can_afford(columns.saturating_mul(changes)) {
            return;
        }
        while missing > 0 && self.make_room(width) {
            let fit = self.room_for_run().checked_div(width).unwrap_or(0);
            let now = missing.min(fit.max(1));
            let columns = now.saturating_mul(width);
            self.insert_if_set(columns);
            let (column, pen) = (self.cursor.column, self.cursor.pen());
            if let Some(row) = self.active.row(self.cursor.row) {
                row.put_repeated(column, now, character, width > 1, pen);
            }
            self.advance(columns);
            missing = missing.saturating_sub(now);
            if self.cursor.pending_wrap && !self.autowrap {
                // The rest overwrites the last column with the same character.
                break;
            }
        }
    }

    /// Returns a count of repetitions with which the screen looks the same, without
    /// the rows that only scroll through it.
    fn without_hidden_rows(&self, count: usize, width: usize) -> usize {
        let row = self.margins.columns.len().checked_div(width).unwrap_or(0);
        let shown = row
            .saturating_mul(self.rows())
            .saturating_add(self.columns());
        let hidden_rows = count.saturating_sub(shown).checked_div(row).unwrap_or(0);
        count.saturating_sub(hidden_rows.saturating_mul(row))
    }

    /// Returns how many columns are left for text.
    #[inline]
    fn room(&self) -> usize {
        self.right_edge().saturating_sub(self.cursor.column)
    }

    /// Returns how many columns of text can be written at once. In insert mode, text
    /// moves others only from the left margin on.
    #[inline]
    fn room_for_run(&self) -> usize {
        let left = self.margins.columns.start;
        match self.insert_mode && self.cursor.column < left {
            true => left.saturating_sub(self.cursor.column),
            false => self.room(),
        }
    }

    /// Wraps to a new row if the next character has to. Returns false if there is
    /// no room for it: for a wide one on a screen of one column, or in the last
    /// column while text does not wrap.
    #[inline]
    fn make_room(&mut self, width: usize) -> bool {
        let has_room = self.room() >= width;
        has_room && !self.cursor.pending_wrap || self.wrap(width)
    }

    /// Is seldom needed: `make_room` stays small without it.
    #[inline(never)]
    fn wrap(&mut self, width: usize) -> bool {
        if width > self.columns() {
            return false;
        }
        if self.autowrap {
            self.index();
            self.cursor.column = self.margins.columns.start;
        }
        self.cursor.pending_wrap = false;
        self.room() >= width
    }

    #[inline]
    fn insert_if_set(&mut self, columns: usize) {
        if self.insert_mode {
            self.shift_right(columns);
        }
    }

    #[inline]
    fn advance(&mut self, width: usize) {
        let edge = self.right_edge();
        let next = self.cursor.column.saturating_add(width);
        self.cursor.pending_wrap = next >= edge;
        self.cursor.column = next.min(edge.saturating_sub(1));
    }

    fn add_mark(&mut self, mark: char) {
        let column = match self.cursor.pending_wrap {
            true => self.cursor.column,
            // There is no character before the first column.
            false if self.cursor.column == 0 => return,
            false => self.cursor.column.saturating_sub(1),
        };
        if let Some(row) = self.active.row(self.cursor.row) {
            row.add_mark(column, mark);
        }
    }
}

/// Returns how many columns a character takes: 0 for a mark, and `None` for one
/// that is not shown.
#[inline]
pub(super) fn width(character: char) -> Option<usize> {
    match character {
        ' '..='~' | SOFT_HYPHEN => Some(1),
        other if is_hidden(other) => None,
        other => other.width(),
    }
}
