use super::{
    display::Display,
    modes::Modes,
    parser::Parser,
    row::Row,
    snapshot::{Screen, ScreenCursor, ScreenHealth},
};
use crate::terminal::size::TerminalSize;

/// A headless terminal emulator.
#[derive(Debug)]
pub(crate) struct Emulator {
    pub(super) parser: Parser,
    pub(super) display: Display,
}

impl Emulator {
    /// Creates an empty screen that keeps up to `scrollback_lines` of scrollback.
    pub(crate) fn new(size: TerminalSize, scrollback_lines: usize) -> Self {
        let size = TerminalSize::clamped(size.columns, size.rows);
        Self {
            parser: Parser::default(),
            display: Display::new(size, scrollback_lines),
        }
    }

    /// Processes output, which may be split anywhere.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.display);
    }

    /// Records that bytes are missing here. The screen may be wrong until the
    /// program clears it.
    pub(crate) fn note_gap(&mut self) {
        // The next bytes do not continue an unfinished sequence.
        self.parser = Parser::default();
        self.display.active.incomplete = true;
        self.display.inactive.incomplete = true;
    }

    /// Changes the size. Long rows are cut, not rewrapped.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        let size = TerminalSize::clamped(size.columns, size.rows);
        if size != self.size() {
            self.display.resize(size);
        }
    }

    /// Takes the replies to the program's queries, to be sent as its input.
    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        self.display.replies.take()
    }

    pub(crate) fn size(&self) -> TerminalSize {
        TerminalSize {
            columns: to_u16(self.display.columns()),
            rows: to_u16(self.display.rows()),
        }
    }

    /// Returns a snapshot of the screen.
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

    /// Returns the text of all rows, without empty ones at the end.
    pub(crate) fn text(&self) -> String {
        super::snapshot::join_rows(&self.display.active.rows)
    }

    /// Returns the text of the cursor's row.
    pub(crate) fn cursor_line(&self) -> String {
        let row = self.display.active.rows.get(self.display.cursor.row);
        row.map(Row::text).unwrap_or_default()
    }

    /// Returns the text of that row before the cursor, blanks included, and the
    /// text from the cursor on.
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

    /// Returns the last lines of the scrollback, the newest last.
    pub(crate) fn scrollback(&self, lines: usize) -> Vec<String> {
        self.display.scrollback.last(lines)
    }

    /// Clears the scrollback. The screen stays as it is.
    pub(crate) fn clear_scrollback(&mut self) {
        self.display.scrollback.clear();
    }

    /// Returns the modes that the program has set.
    pub(crate) fn modes(&self) -> Modes {
        self.display.modes
    }

    /// Returns whether the alternate screen is shown.
    pub(crate) fn is_alternate(&self) -> bool {
        self.display.modes.alternate_screen
    }
}

/// Converts a row or column, which always fits.
fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
