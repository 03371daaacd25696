use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use super::{
    charset::Charset, cursor::Cursor, grid::Grid, modes::Modes, reply_queue::ReplyQueue,
    scrollback::Scrollback, style::Colour, tabs::Tabs, title::Title,
};
use vmcell_tree::is_hidden;

use crate::terminal::size::TerminalSize;

/// The state of the emulated terminal and the operations on it. `controls` maps
/// sequences to operations.
///
/// Every operation costs at most as much as rewriting a few rows, whatever its
/// parameters.
#[derive(Debug)]
pub(super) struct Display {
    /// The main and the alternate screen; `active` is the one that is shown.
    pub(super) active: Grid,
    pub(super) inactive: Grid,
    pub(super) cursor: Cursor,
    pub(super) cursor_visible: bool,
    pub(super) scrollback: Scrollback,
    pub(super) title: Title,
    pub(super) replies: ReplyQueue,
    pub(super) modes: Modes,
    pub(super) tabs: Tabs,
    /// Text wraps after the last column (DECAWM).
    pub(super) autowrap: bool,
    /// New characters move old ones to the right (IRM).
    pub(super) insert_mode: bool,
    /// A line feed returns to the first column (LNM).
    pub(super) newline_mode: bool,
    /// The scrolling region.
    pub(super) region: Range<usize>,
    /// The last character that was printed, for REP.
    last_char: Option<char>,
}

impl Display {
    pub(super) fn new(size: TerminalSize, scrollback_lines: usize) -> Self {
        let (columns, rows) = (usize::from(size.columns), usize::from(size.rows));
        Self {
            active: Grid::new(columns, rows),
            inactive: Grid::new(columns, rows),
            cursor: Cursor::default(),
            cursor_visible: true,
            scrollback: Scrollback::new(scrollback_lines),
            title: Title::default(),
            replies: ReplyQueue::default(),
            modes: Modes::default(),
            tabs: Tabs::new(columns),
            autowrap: true,
            insert_mode: false,
            newline_mode: false,
            region: 0..rows,
            last_char: None,
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.active.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.active.rows.len()
    }

    pub(super) fn background(&self) -> Colour {
        self.cursor.style.background
    }

    pub(super) fn resize(&mut self, size: TerminalSize) {
        let (columns, rows) = (usize::from(size.columns), usize::from(size.rows));
        let alternate = self.modes.alternate_screen;
        // The inactive screen's cursor is the saved one.
        let hidden = self.inactive.saved.row;
        let Self {
            active,
            inactive,
            scrollback,
            ..
        } = self;
        let removed = active.resize(columns, rows, self.cursor.row, |row| {
            if !alternate {
                scrollback.push(|| row.text());
            }
        });
        let removed_inactive = inactive.resize(columns, rows, hidden, |row| {
            if alternate {
                scrollback.push(|| row.text());
            }
        });
        self.cursor.row = self.cursor.row.saturating_sub(removed);
        active.saved.row = active.saved.row.saturating_sub(removed);
        inactive.saved.row = inactive.saved.row.saturating_sub(removed_inactive);
        for cursor in [&mut self.cursor, &mut active.saved, &mut inactive.saved] {
            cursor.row = cursor.row.min(rows.saturating_sub(1));
            cursor.column = cursor.column.min(columns.saturating_sub(1));
            cursor.pending_wrap = false;
        }
        self.tabs.resize(columns);
        self.region = 0..rows;
    }

    /// Resets everything but the scrollback and pending replies (RIS).
    pub(super) fn reset(&mut self) {
        self.leave_alternate();
        self.soft_reset();
        self.cursor = Cursor::default();
        for grid in [&mut self.active, &mut self.inactive] {
            grid.clear(Colour::Default);
        }
        self.modes = Modes::default();
        self.tabs = Tabs::new(self.columns());
        self.newline_mode = false;
        self.last_char = None;
        self.title = Title::default();
    }

    /// Resets the modes that a crashed program may leave set (DECSTR).
    pub(super) fn soft_reset(&mut self) {
        self.cursor = self.cursor.with_default_attributes();
        self.active.saved = Cursor::default();
        self.cursor_visible = true;
        self.autowrap = true;
        self.insert_mode = false;
        self.modes.application_cursor_keys = false;
        self.modes.application_keypad = false;
        self.region = 0..self.rows();
    }

    /// Writes many ASCII characters at a time, the most frequent case.
    pub(super) fn write_ascii(&mut self, mut text: &[u8]) {
        if self.insert_mode || self.cursor.charset() != Charset::Ascii {
            return text.iter().for_each(|byte| self.write(char::from(*byte)));
        }
        while let Some((&last, _)) = text.split_last() {
            let room = match self.cursor.pending_wrap {
                true => 0,
                false => self.columns().saturating_sub(self.cursor.column),
            };
            if room == 0 {
                // The first character decides whether to wrap.
                let (first, rest) = text.split_at(1);
                self.put(first.first().copied().unwrap_or(last).into(), false);
                text = rest;
            } else {
                let (now, rest) = text.split_at(room.min(text.len()));
                let (column, style) = (self.cursor.column, self.cursor.style);
                if let Some(row) = self.active.row(self.cursor.row) {
                    row.put_ascii(column, now, style);
                }
                self.advance(now.len());
                text = rest;
            }
            self.last_char = Some(char::from(last));
        }
    }

    pub(super) fn write(&mut self, character: char) {
        let character = self.cursor.charset().map(character);
        let wide = match character {
            ' '..='~' => false,
            other if is_hidden(other) => return,
            other => match other.width() {
                None => return,
                Some(0) => return self.add_mark(other),
                Some(width) => width > 1,
            },
        };
        self.last_char = Some(character);
        self.put(character, wide);
    }

    fn put(&mut self, character: char, wide: bool) {
        let columns = self.columns();
        let width = if wide { 2 } else { 1 };
        if width > columns {
            return;
        }
        let fits = self.cursor.column.saturating_add(width) <= columns;
        if !fits || self.cursor.pending_wrap {
            if self.autowrap {
                self.cursor.column = 0;
                self.index();
            } else {
                self.cursor.column = self.cursor.column.min(columns.saturating_sub(width));
            }
            self.cursor.pending_wrap = false;
        }
        let (column, background) = (self.cursor.column, self.background());
        let (style, insert_mode) = (self.cursor.style, self.insert_mode);
        if let Some(row) = self.active.row(self.cursor.row) {
            if insert_mode {
                row.insert(column, width, background, columns);
            }
            row.put(column, character, wide, style);
        }
        self.advance(width);
    }

    fn advance(&mut self, width: usize) {
        let next = self.cursor.column.saturating_add(width);
        self.cursor.pending_wrap = next >= self.columns();
        self.cursor.column = next.min(self.columns().saturating_sub(1));
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

    /// Repeats the last character, at most once per column (REP).
    pub(super) fn repeat(&mut self, count: usize) {
        if let Some(character) = self.last_char {
            let wide = character.width().is_some_and(|width| width > 1);
            for _ in 0..count.min(self.columns()) {
                self.put(character, wide);
            }
        }
    }

    /// Moves a row down; scrolls at the end of the region (IND).
    pub(super) fn index(&mut self) {
        self.cursor.pending_wrap = false;
        let next = self.cursor.row.saturating_add(1);
        if next == self.region.end {
            self.scroll_up(self.region.clone(), 1);
        } else if next < self.rows() {
            self.cursor.row = next;
        }
    }

    /// Moves a row up; scrolls at the start of the region (RI).
    pub(super) fn reverse_index(&mut self) {
        self.cursor.pending_wrap = false;
        if self.cursor.row == self.region.start {
            self.scroll_down(self.region.clone(), 1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    pub(super) fn line_feed(&mut self) {
        self.index();
        if self.newline_mode {
            self.cursor.column = 0;
        }
    }

    pub(super) fn move_to_column(&mut self, column: usize) {
        self.cursor.column = column.min(self.columns().saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    /// Moves to a row, which counts from the region in origin mode.
    pub(super) fn move_to_row(&mut self, row: usize) {
        let rows = match self.cursor.origin_mode {
            true => self.region.clone(),
            false => 0..self.rows(),
        };
        let row = rows.start.saturating_add(row);
        self.cursor.row = row.min(rows.end.saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    /// Returns the cursor's row, which counts from the region in origin mode.
    pub(super) fn reported_row(&self) -> usize {
        match self.cursor.origin_mode {
            true => self.cursor.row.saturating_sub(self.region.start),
            false => self.cursor.row,
        }
    }

    /// Moves up, but not across the top of the region.
    pub(super) fn up(&mut self, count: usize) {
        let top = match self.cursor.row >= self.region.start {
            true => self.region.start,
            false => 0,
        };
        self.cursor.row = self.cursor.row.saturating_sub(count).max(top);
        self.cursor.pending_wrap = false;
    }

    /// Moves down, but not across the end of the region.
    pub(super) fn down(&mut self, count: usize) {
        let end = match self.cursor.row < self.region.end {
            true => self.region.end,
            false => self.rows(),
        };
        let row = self.cursor.row.saturating_add(count);
        self.cursor.row = row.min(end.saturating_sub(1));
        self.cursor.pending_wrap = false;
    }

    /// Sets the scrolling region, from the first to the last row inclusive.
    pub(super) fn set_region(&mut self, first: usize, last: usize) {
        let region = first..last.saturating_add(1).min(self.rows());
        if region.len() < 2 {
            return;
        }
        self.region = region;
        self.move_to_row(0);
        self.move_to_column(0);
    }

    pub(super) fn save_cursor(&mut self) {
        self.active.saved = self.cursor;
    }

    pub(super) fn restore_cursor(&mut self) {
        self.cursor = self.active.saved;
    }

    pub(super) fn enter_alternate(&mut self) {
        if !self.modes.alternate_screen {
            std::mem::swap(&mut self.active, &mut self.inactive);
            self.modes.alternate_screen = true;
        }
    }

    pub(super) fn leave_alternate(&mut self) {
        if self.modes.alternate_screen {
            std::mem::swap(&mut self.active, &mut self.inactive);
            self.modes.alternate_screen = false;
        }
    }
}
