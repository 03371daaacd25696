use std::ops::Range;

use super::{
    budget::WorkBudget, cursor::Cursor, grid::Grid, margins::Margins, modes::Modes,
    reply_queue::ReplyQueue, scrollback::Scrollback, style::Colour, tabs::Tabs, title::Title,
};
use crate::terminal::size::TerminalSize;

/// The state of the emulated terminal. `controls` maps sequences to operations
/// on it: `text` writes, `movement` moves the cursor, and `edits`, `columns`,
/// `rectangle` and `protection` change what was written.
///
/// An operation costs at most as much as rewriting one row, whatever its
/// parameters, or is paid for from the budget.
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
    pub(super) margins: Margins,
    /// Characters were protected since the last reset (DECSCA).
    pub(super) has_protection: bool,
    /// The character that was printed last, before it was mapped. `None` if a
    /// control followed it (REP).
    pub(super) last_char: Option<char>,
    pub(super) budget: WorkBudget,
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
            margins: Margins::new(columns, rows),
            has_protection: false,
            last_char: None,
            budget: WorkBudget::default(),
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
        self.reset_margins();
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
        self.margins.left_right_mode = false;
        self.reset_margins();
        self.has_protection = false;
    }

    /// Removes all margins. The mode that allows them stays.
    pub(super) fn reset_margins(&mut self) {
        let left_right_mode = self.margins.left_right_mode;
        self.margins = Margins {
            left_right_mode,
            ..Margins::new(self.columns(), self.rows())
        };
    }

    /// Pays for an operation that changes many cells. Returns false if it must not
    /// be executed.
    pub(super) fn can_afford(&mut self, cells: usize) -> bool {
        let can_afford = self.budget.spend(cells);
        if !can_afford {
            self.active.incomplete = true;
        }
        can_afford
    }

    /// Pays for an operation on some columns of some rows.
    pub(super) fn can_afford_part(&mut self, rows: &Range<usize>, columns: &Range<usize>) -> bool {
        let rows = self.active.rows.get(rows.clone()).unwrap_or_default();
        let cost = rows.iter().map(|row| row.cost(columns)).sum();
        self.can_afford(cost)
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
