mod segment;

use super::{
    cell::{Cell, Part},
    cursor::Pen,
    style::Colour,
    work,
};

/// A row of a screen.
///
/// Only the cells up to the last one that was written are stored. The others are
/// blank and of one colour. This makes clearing a row of any length cheap, which
/// programs can request with three bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    cells: Vec<Cell>,
    tail_colour: Colour,
}

impl Row {
    /// Returns the stored cells. All others are blank.
    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Replaces the character in a column, in both columns if it is wide.
    pub(super) fn replace(&mut self, column: usize, character: char) {
        for column in [column, column.saturating_add(1)] {
            let Some(cell) = self.cells.get_mut(column) else {
                return;
            };
            let is_wide = cell.part() == Part::Left;
            cell.replace(character);
            if !is_wide {
                return;
            }
        }
    }

    /// Returns the background of the cells that are not stored.
    pub(super) fn tail_colour(&self) -> Colour {
        self.tail_colour
    }

    /// Returns the text, without trailing blanks.
    pub(super) fn text(&self) -> String {
        let last = self.cells.iter().rposition(|cell| !cell.is_blank());
        let used = last.map_or(0, |last| last.saturating_add(1));
        let mut text = String::with_capacity(used);
        for cell in self.cells.iter().take(used) {
            cell.push_to(&mut text);
        }
        text
    }

    /// Returns the same row without redundant blank cells.
    pub(super) fn trimmed(&self) -> Self {
        let blank = Cell::blank(self.tail_colour);
        let last = self.cells.iter().rposition(|cell| *cell != blank);
        let used = last.map_or(0, |last| last.saturating_add(1));
        Self {
            cells: self.cells.iter().take(used).copied().collect(),
            tail_colour: self.tail_colour,
        }
    }

    /// Writes a character into its one or two columns.
    pub(super) fn put(&mut self, column: usize, character: char, wide: bool, pen: Pen) {
        if wide {
            self.blank_straddling(column);
            self.blank_straddling(column.saturating_add(2));
            self.set(column, Cell::new(character, pen, Part::Left));
            self.set(
                column.saturating_add(1),
                Cell::new(character, pen, Part::Right),
            );
            return;
        }
        let cell = Cell::new(character, pen, Part::Whole);
        match self.cells.get_mut(column) {
            Some(old) if old.part() == Part::Whole => *old = cell,
            Some(_) => {
                self.blank_straddling(column);
                self.blank_straddling(column.saturating_add(1));
                self.set(column, cell);
            }
            None => self.set(column, cell),
        }
    }

    /// Writes characters of one column each.
    pub(super) fn put_ascii(&mut self, column: usize, text: &[u8], pen: Pen) {
        let end = column.saturating_add(text.len());
        self.blank_straddling(column);
        self.blank_straddling(end);
        self.fill_to(column);
        let blank = Cell::new(' ', pen, Part::Whole);
        let cell = |byte: &u8| blank.with_character(char::from(*byte));
        let overlap = end.min(self.cells.len()).saturating_sub(column);
        let (overwritten, appended) = text.split_at(overlap);
        if let Some(old) = self.cells.get_mut(column..column.saturating_add(overlap)) {
            for (old, byte) in old.iter_mut().zip(overwritten) {
                *old = cell(byte);
            }
        }
        self.cells.extend(appended.iter().map(cell));
    }

    /// Writes a character several times.
    pub(super) fn put_repeated(
        &mut self,
        column: usize,
        count: usize,
        character: char,
        wide: bool,
        pen: Pen,
    ) {
        if !wide {
            return self.fill(column..column.saturating_add(count), character, pen);
        }
        for number in 0..count {
            let column = column.saturating_add(number.saturating_mul(2));
            self.put(column, character, wide, pen);
        }
    }

    /// Adds a mark to the character in a column.
    pub(super) fn add_mark(&mut self, column: usize, mark: char) {
        let column = match self.cells.get(column).map(Cell::part) {
            Some(Part::Right) => column.saturating_sub(1),
            _ => column,
        };
        self.fill_to(column.saturating_add(1));
        if let Some(cell) = self.cells.get_mut(column) {
            cell.add_mark(mark);
        }
    }

    pub(super) fn clear(&mut self, background: Colour) {
        self.cells.clear();
        self.tail_colour = background;
    }

    /// Adapts it to a new width of the screen. `before` is the old width.
    pub(super) fn resize(&mut self, before: usize, columns: usize) {
        if self.tail_colour != Colour::Default && columns > before {
            self.fill_to(before);
            self.tail_colour = Colour::Default;
        }
        self.blank_straddling(columns);
        self.cells.truncate(columns);
        self.cells.shrink_to_fit();
    }

    fn set(&mut self, column: usize, cell: Cell) {
        self.fill_to(column);
        match self.cells.get_mut(column) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
    }

    /// Stores blank cells up to a column.
    fn fill_to(&mut self, columns: usize) {
        if self.cells.len() < columns {
            work::count(columns.saturating_sub(self.cells.len()));
            self.cells.resize(columns, Cell::blank(self.tail_colour));
        }
    }

    /// Replaces a wide character that straddles the left edge of a column by two
    /// blanks.
    fn blank_straddling(&mut self, column: usize) {
        if self
            .cells
            .get(column)
            .is_none_or(|cell| cell.part() != Part::Right)
        {
            return;
        }
        for half in [column.saturating_sub(1), column] {
            if let Some(cell) = self.cells.get_mut(half) {
                *cell = Cell::blank(cell.style.background);
            }
        }
    }
}
