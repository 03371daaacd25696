/// The line that is being printed, until it is complete.
///
/// A terminal wraps it into rows. A carriage return goes to the start of the
/// current row, so the buffer keeps that position.
///
/// ```text
/// emitted | cells ...............
///           ^ row_start  ^ cursor
/// ```
#[derive(Clone, Debug)]
pub(super) struct LineBuffer {
    cells: Vec<char>,
    cursor: usize,
    row_start: usize,
    /// The cursor's column in the current row.
    column: usize,
    columns: usize,
    /// How many of the next characters are inserted before the rest.
    pending_inserts: usize,
    emitted: Emitted,
    /// The cursor returned to the start of a row that was emitted. The next
    /// character starts a new line; a line feed ends this one.
    restarted: bool,
}

/// What part of the line was emitted, and cannot be changed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emitted {
    Nothing,
    /// Rows before the current one.
    EarlierRows,
    /// The beginning of the current row.
    ThisRow,
}

/// An empty cell. Omitted at the end of a line.
const ERASED: char = '\0';

/// Longer lines are emitted in parts.
const MAX_CELLS: usize = 4096;

const TAB_WIDTH: usize = 8;

impl Default for LineBuffer {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            cursor: 0,
            row_start: 0,
            column: 0,
            columns: usize::MAX,
            pending_inserts: 0,
            emitted: Emitted::Nothing,
            restarted: false,
        }
    }
}

impl LineBuffer {
    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns.max(1);
    }

    pub(super) fn put(&mut self, character: char, text: &mut String) {
        if self.restarted {
            self.end(text);
        }
        if self.column >= self.columns {
            self.column = 0;
            self.row_start = self.cursor;
            if self.emitted == Emitted::ThisRow {
                self.emitted = Emitted::EarlierRows;
            }
        }
        match self.cells.get_mut(self.cursor) {
            Some(_) if self.pending_inserts > 0 => {
                self.pending_inserts -= 1;
                self.cells.insert(self.cursor, character);
            }
            Some(cell) => *cell = character,
            None => self.cells.push(character),
        }
        self.cursor += 1;
        self.column += 1;
        if self.cells.len() >= MAX_CELLS {
            self.emit(text);
        }
    }

    pub(super) fn control(&mut self, control: char, text: &mut String) {
        self.pending_inserts = 0;
        match control {
            '\n' | '\x0b' | '\x0c' => self.end(text),
            '\r' => self.carriage_return(),
            '\x08' => self.move_left(1),
            '\t' => self.tab(text),
            _ => {}
        }
    }

    /// Applies a control sequence, given by its final character and its number, 0
    /// if it has none.
    pub(super) fn edit(&mut self, kind: char, number: usize, text: &mut String) {
        // Colours (`m`) may come between inserted characters.
        if kind != 'm' {
            self.pending_inserts = 0;
        }
        let count = number.max(1);
        let rest = self.cells.len() - self.cursor;
        match kind {
            'K' if number == 0 => self.cells.truncate(self.cursor),
            'J' if number == 0 => self.cells.truncate(self.cursor),
            'K' if number == 1 => self.erase(self.row_start, self.cursor + 1),
            'K' if number == 2 => self.erase(self.row_start, self.cells.len()),
            'X' => self.erase(self.cursor, self.cursor + count),
            'P' => drop(self.cells.drain(self.cursor..self.cursor + count.min(rest))),
            '@' => self.pending_inserts = count,
            'C' | 'a' => self.move_right(count),
            'D' => self.move_left(count),
            'G' | '`' if count > self.column + 1 => self.move_right(count - self.column - 1),
            'G' | '`' if count == 1 => self.carriage_return(),
            'G' | '`' => self.move_left(self.column + 1 - count),
            // To another row of the screen.
            'A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'e' | 'f' | 'u' if self.is_used() => self.end(text),
            _ => {}
        }
    }

    /// Moves the contents of the line to the text.
    pub(super) fn emit(&mut self, text: &mut String) {
        if self.cells.is_empty() {
            return;
        }
        while self.cells.last() == Some(&ERASED) {
            self.cells.pop();
        }
        let shown = |cell| if cell == ERASED { ' ' } else { cell };
        text.reserve(self.cells.len());
        text.extend(self.cells.drain(..).map(shown));
        self.cursor = 0;
        self.row_start = 0;
        self.emitted = Emitted::ThisRow;
    }

    fn end(&mut self, text: &mut String) {
        self.emit(text);
        text.push('\n');
        *self = Self {
            columns: self.columns,
            // Keeps the allocation.
            cells: std::mem::take(&mut self.cells),
            ..Self::default()
        };
    }

    fn is_used(&self) -> bool {
        !self.cells.is_empty() || self.emitted != Emitted::Nothing
    }

    fn carriage_return(&mut self) {
        self.restarted = self.emitted == Emitted::ThisRow;
        self.cursor = self.row_start;
        self.column = 0;
    }

    fn move_left(&mut self, count: usize) {
        self.cursor -= count.min(self.cursor - self.row_start);
        self.column = self.column.saturating_sub(count);
    }

    /// Moves the cursor right. Any distance beyond the end of the line becomes one
    /// blank, so that a short sequence cannot make a long text.
    fn move_right(&mut self, count: usize) {
        let rest = self.cells.len() - self.cursor;
        if count > rest && self.cells.last() != Some(&ERASED) {
            self.cells.push(ERASED);
        }
        self.cursor = (self.cursor + count).min(self.cells.len());
        self.column = (self.column + count).min(self.columns - 1);
    }

    fn tab(&mut self, text: &mut String) {
        let distance = TAB_WIDTH - self.column % TAB_WIDTH;
        if self.cursor < self.cells.len() {
            self.move_right(distance);
        } else {
            self.put('\t', text);
            self.column = (self.column + distance - 1).min(self.columns - 1);
        }
    }

    fn erase(&mut self, from: usize, to: usize) {
        let to = to.min(self.cells.len());
        if let Some(cells) = self.cells.get_mut(from..to) {
            cells.fill(ERASED);
        }
    }
}
