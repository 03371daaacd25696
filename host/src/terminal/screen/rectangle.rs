use std::ops::Range;

use super::{
    cursor::{Cursor, Pen},
    display::Display,
    protection::Erasure,
    style::Style,
    text,
};
use crate::terminal::sequence::Sequence;

/// A part of the screen.
struct Rectangle {
    rows: Range<usize>,
    columns: Range<usize>,
}

/// Operations on rectangles.
impl Display {
    /// Fills the screen with the letter E, to align monitors (DECALN).
    pub(super) fn show_alignment_pattern(&mut self) {
        self.reset_margins();
        self.cursor.origin_mode = false;
        self.cursor.style = Style::default();
        self.move_home();
        let screen = Rectangle {
            rows: 0..self.rows(),
            columns: 0..self.columns(),
        };
        self.fill(screen, 'E', Cursor::default().pen());
    }

    /// Fills a rectangle with a character of one column (DECFRA).
    pub(super) fn fill_rectangle(&mut self, sequence: &Sequence) {
        let code = u32::try_from(sequence.parameter(0)).ok();
        let character = code.and_then(char::from_u32);
        let character = character.filter(|character| text::width(*character) == Some(1));
        if let (Some(character), Some(rectangle)) = (character, self.rectangle(sequence, 1)) {
            self.fill(rectangle, character, self.cursor.pen());
        }
    }

    /// Erases a rectangle (DECERA, DECSERA).
    pub(super) fn erase_rectangle(&mut self, sequence: &Sequence, erasure: Erasure) {
        let (background, columns) = (self.background(), self.columns());
        let Some(rectangle) = self.rectangle(sequence, 0) else {
            return;
        };
        if !self.can_afford_part(&rectangle.rows, &rectangle.columns) {
            return;
        }
        let rows = self.active.rows.get_mut(rectangle.rows);
        for row in rows.into_iter().flatten() {
            let range = rectangle.columns.clone();
            match erasure {
                Erasure::All => row.erase(range, background, columns),
                Erasure::Unprotected => row.erase_unprotected(range, background),
            }
        }
    }

    fn fill(&mut self, rectangle: Rectangle, character: char, pen: Pen) {
        if !self.can_afford_part(&rectangle.rows, &rectangle.columns) {
            return;
        }
        let rows = self.active.rows.get_mut(rectangle.rows);
        for row in rows.into_iter().flatten() {
            row.fill(rectangle.columns.clone(), character, pen);
        }
    }

    /// Returns the rectangle that four parameters specify: top, left, bottom and
    /// right. `None` if it is empty.
    fn rectangle(&self, sequence: &Sequence, first: usize) -> Option<Rectangle> {
        let parameter = |index: usize| sequence.parameter(first.saturating_add(index));
        let rows = range(parameter(0), parameter(2), self.addressable_rows());
        let columns = range(parameter(1), parameter(3), self.addressable_columns());
        let is_empty = rows.is_empty() || columns.is_empty();
        (!is_empty).then_some(Rectangle { rows, columns })
    }
}

/// Returns a range by its first and last number, which count from 1 within
/// `whole`. Numbers that are missing stand for the whole.
fn range(first: usize, last: usize, whole: Range<usize>) -> Range<usize> {
    let start = whole.start.saturating_add(first.saturating_sub(1));
    let end = match last {
        0 => whole.end,
        last => whole.start.saturating_add(last).min(whole.end),
    };
    start..end
}
