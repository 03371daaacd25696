/// The line that is being printed, until it is complete.
///
/// A terminal breaks it into rows. Going back to the beginning goes back to the
/// beginning of the row, so the line keeps where that is.
///
/// ```text
/// told already | cells .................
///                ^ start of the row  ^ cursor
/// ```
#[derive(Clone, Debug)]
pub(super) struct PlainLine {
    cells: Vec<char>,
    cursor: usize,
    start: usize,
    /// How far the cursor is from the beginning of the row, in columns of the
    /// terminal.
    across: usize,
    columns: usize,
    /// How many of the next characters push the rest aside.
    inserting: usize,
    told: Told,
    /// It went back to the beginning of a row that is told already: what comes
    /// now is a new line, if it is not the end of this one.
    returned: bool,
}

/// What of the line is given away, and cannot be changed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// Rows before this one.
    Before,
    /// The beginning of this row.
    Row,
}

/// A cell without a character in it. At the end of a line it is left out.
const ERASED: char = '\0';

/// Longer lines are told in parts.
const MAX_CELLS: usize = 4096;

const TAB: usize = 8;

impl Default for PlainLine {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            cursor: 0,
            start: 0,
            across: 0,
            columns: usize::MAX,
            inserting: 0,
            told: Told::Nothing,
            returned: false,
        }
    }
}

impl PlainLine {
    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns.max(1);
    }

    pub(super) fn put(&mut self, character: char, text: &mut String) {
        if self.returned {
            self.end(text);
        }
        if self.across >= self.columns {
            self.across = 0;
            self.start = self.cursor;
            if self.told == Told::Row {
                self.told = Told::Before;
            }
        }
        match self.cells.get_mut(self.cursor) {
            Some(_) if self.inserting > 0 => {
                self.inserting -= 1;
                self.cells.insert(self.cursor, character);
            }
            Some(cell) => *cell = character,
            None => self.cells.push(character),
        }
        self.cursor += 1;
        self.across += 1;
        if self.cells.len() >= MAX_CELLS {
            self.settle(text);
        }
    }

    pub(super) fn control(&mut self, control: char, text: &mut String) {
        self.inserting = 0;
        match control {
            '\n' | '\x0b' | '\x0c' => self.end(text),
            '\r' => self.go_to_start(),
            '\x08' => self.go_back(1),
            '\t' => self.tab(text),
            _ => {}
        }
    }

    /// A control sequence, by its last character and its number, 0 if there is
    /// none.
    pub(super) fn edit(&mut self, kind: char, count: usize, text: &mut String) {
        // Of other sequences colours are the most; they are put between
        // characters that are inserted.
        if kind != 'm' {
            self.inserting = 0;
        }
        let many = count.max(1);
        let rest = self.cells.len() - self.cursor;
        match kind {
            'K' if count == 0 => self.cells.truncate(self.cursor),
            'J' if count == 0 => self.cells.truncate(self.cursor),
            'K' if count == 1 => self.erase(self.start, self.cursor + 1),
            'K' if count == 2 => self.erase(self.start, self.cells.len()),
            'X' => self.erase(self.cursor, self.cursor + many),
            'P' => drop(self.cells.drain(self.cursor..self.cursor + many.min(rest))),
            '@' => self.inserting = many,
            'C' | 'a' => self.go_on(many),
            'D' => self.go_back(many),
            'G' | '`' if many > self.across + 1 => self.go_on(many - self.across - 1),
            'G' | '`' if many == 1 => self.go_to_start(),
            'G' | '`' => self.go_back(self.across + 1 - many),
            // Elsewhere on the screen.
            'A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'e' | 'f' | 'u' if self.any() => self.end(text),
            _ => {}
        }
    }

    /// Gives away what is in the line.
    pub(super) fn settle(&mut self, text: &mut String) {
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
        self.start = 0;
        self.told = Told::Row;
    }

    fn end(&mut self, text: &mut String) {
        self.settle(text);
        text.push('\n');
        *self = Self {
            columns: self.columns,
            // Keeps its memory.
            cells: std::mem::take(&mut self.cells),
            ..Self::default()
        };
    }

    fn any(&self) -> bool {
        !self.cells.is_empty() || self.told != Told::Nothing
    }

    fn go_to_start(&mut self) {
        self.returned = self.told == Told::Row;
        self.cursor = self.start;
        self.across = 0;
    }

    fn go_back(&mut self, count: usize) {
        self.cursor -= count.min(self.cursor - self.start);
        self.across = self.across.saturating_sub(count);
    }

    /// Beyond the end of the line one blank stands for any distance, so that
    /// no short sequence makes a long text.
    fn go_on(&mut self, count: usize) {
        let rest = self.cells.len() - self.cursor;
        if count > rest && self.cells.last() != Some(&ERASED) {
            self.cells.push(ERASED);
        }
        self.cursor = (self.cursor + count).min(self.cells.len());
        self.across = (self.across + count).min(self.columns - 1);
    }

    fn tab(&mut self, text: &mut String) {
        let distance = TAB - self.across % TAB;
        if self.cursor < self.cells.len() {
            self.go_on(distance);
        } else {
            self.put('\t', text);
            self.across = (self.across + distance - 1).min(self.columns - 1);
        }
    }

    fn erase(&mut self, from: usize, to: usize) {
        let to = to.min(self.cells.len());
        if let Some(cells) = self.cells.get_mut(from..to) {
            cells.fill(ERASED);
        }
    }
}
