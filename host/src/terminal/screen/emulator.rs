use super::{
    display::Display,
    modes::Modes,
    parser::Parser,
    row::Row,
    snapshot::{Screen, ScreenCursor, ScreenHealth},
};
use crate::terminal::size::TerminalSize;

/// A terminal without a window: takes what a program prints, and knows what a
/// person would see.
#[derive(Debug)]
pub(crate) struct Emulator {
    pub(super) parser: Parser,
    pub(super) display: Display,
}

impl Emulator {
    /// An empty screen, with a place for so many lines that leave it at the top.
    pub(crate) fn new(size: TerminalSize, scrollback_lines: usize) -> Self {
        let size = TerminalSize::clamped(size.columns, size.rows);
        Self {
            parser: Parser::new(),
            display: Display::new(size, scrollback_lines),
        }
    }

    /// Takes what the program printed, cut anywhere.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.display);
    }

    /// Bytes are missing from here on. What is on the screen may be wrong until the
    /// program clears it.
    pub(crate) fn note_gap(&mut self) {
        // What comes next is not the end of what was being read.
        self.parser = Parser::new();
        self.display.active.incomplete = true;
        self.display.inactive.incomplete = true;
    }

    /// Has another size from now on. Long rows are cut, not wrapped anew.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        let size = TerminalSize::clamped(size.columns, size.rows);
        if size != self.size() {
            self.display.resize(size);
        }
    }

    /// What the program shall read as answers to its questions.
    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        self.display.replies.take()
    }

    pub(crate) fn size(&self) -> TerminalSize {
        TerminalSize {
            columns: to_u16(self.display.columns()),
            rows: to_u16(self.display.rows()),
        }
    }

    /// What the screen looks like now.
    pub(crate) fn screen(&self) -> Screen {
        let Display { active, cursor, .. } = &self.display;
        Screen {
            size: self.size(),
            cursor: ScreenCursor {
                row: to_u16(cursor.row),
                column: to_u16(cursor.column),
                visible: self.display.cursor_visible,
            },
            title: self.display.title.text().to_owned(),
            alternate: self.is_alternate(),
            health: match active.incomplete {
                true => ScreenHealth::Incomplete,
                false => ScreenHealth::Good,
            },
            rows: active.rows.iter().map(Row::trimmed).collect(),
        }
    }

    /// The text of all rows, without empty ones at the end.
    pub(crate) fn text(&self) -> String {
        super::snapshot::join_rows(&self.display.active.rows)
    }

    /// The text of the row that the cursor is in.
    pub(crate) fn cursor_line(&self) -> String {
        let row = self.display.active.rows.get(self.display.cursor.row);
        row.map(Row::text).unwrap_or_default()
    }

    /// The text of that row up to the cursor, with all its blanks, and behind.
    pub(crate) fn split_cursor_row(&self) -> (String, String) {
        let (mut before, mut after) = (String::new(), String::new());
        let mut column = 0;
        let row = self.display.active.rows.get(self.display.cursor.row);
        for cell in row.into_iter().flat_map(|row| row.cells()) {
            match column < self.display.cursor.column {
                true => cell.push_to(&mut before),
                false => cell.push_to(&mut after),
            }
            column += cell.columns();
        }
        let missing = self.display.cursor.column.saturating_sub(column);
        before.extend(std::iter::repeat_n(' ', missing));
        (before, after)
    }

    /// The last lines that left the screen at its top, the newest last.
    pub(crate) fn scrollback(&self, lines: usize) -> Vec<String> {
        self.display.scrollback.last(lines)
    }

    /// Forgets those lines. The screen stays as it is.
    pub(crate) fn clear_scrollback(&mut self) {
        self.display.scrollback.clear();
    }

    /// What the program has asked for.
    pub(crate) fn modes(&self) -> Modes {
        self.display.modes
    }

    /// Whether the program draws on the screen that has no scrollback.
    pub(crate) fn is_alternate(&self) -> bool {
        self.display.modes.alternate_screen
    }
}

/// No screen has more rows or columns than fit.
fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
