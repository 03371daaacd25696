//! Secrets on a screen, masked where they are.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::{display::Display, emulator::Emulator, grid::Grid, scrollback::Scrollback};
use crate::terminal::redaction::{MASK, Sweep, SweepKind};

/// A secret may begin in lines that were searched already.
const LINES_AGAIN: usize = 64;

impl Emulator {
    /// Masks secrets on both screens, in the lines that left them, and in titles.
    pub(crate) fn redact(&mut self, sweep: &Sweep<'_>) {
        let Display {
            shown,
            other,
            scrollback,
            title,
            modes,
            ..
        } = &mut self.display;
        let (main, alternate) = match modes.alternate_screen {
            false => (shown, other),
            true => (other, shown),
        };
        let unsearched = scrollback.take_unsearched();
        let lines = match sweep.kind() {
            SweepKind::Exact => unsearched.saturating_add(LINES_AGAIN),
            SweepKind::Completed { lines } => lines,
        };
        let mut text = Text::new(sweep.kind());
        text.add_lines(scrollback, lines, main.columns);
        text.add_rows(main);
        text.mask(sweep, main, scrollback);
        let mut text = Text::new(sweep.kind());
        text.add_rows(alternate);
        text.mask(sweep, alternate, scrollback);
        title.texts().for_each(|text| sweep.mask(text));
    }
}

/// The letters of lines and rows, one behind the other as if nothing were
/// between them.
struct Text {
    kind: SweepKind,
    letters: Zeroizing<Vec<char>>,
    places: Vec<CellPosition>,
}

/// Where a letter is.
#[derive(Clone, Copy)]
enum CellPosition {
    /// In a line that left the screen.
    Line { number: usize, at: usize },
    /// On the screen.
    Cell { row: usize, column: usize },
    /// Nowhere: a line ends.
    End,
}

impl Text {
    fn new(kind: SweepKind) -> Self {
        Self {
            kind,
            letters: Zeroizing::default(),
            places: Vec::new(),
        }
    }

    fn add_lines(&mut self, scrollback: &Scrollback, lines: usize, columns: usize) {
        for (number, line) in scrollback.numbered(lines) {
            let mut length = 0;
            for (at, letter) in line.chars().enumerate() {
                self.add(letter, CellPosition::Line { number, at });
                length = at.saturating_add(1);
            }
            self.end_line(length >= columns);
        }
    }

    fn add_rows(&mut self, grid: &Grid) {
        for (number, row) in grid.rows.iter().enumerate() {
            let used = row.cells().iter().rposition(|cell| !cell.is_blank());
            let used = used.map_or(0, |last| last.saturating_add(1));
            for (column, cell) in row.cells().iter().take(used).enumerate() {
                for letter in cell.characters() {
                    self.add(
                        letter,
                        CellPosition::Cell {
                            row: number,
                            column,
                        },
                    );
                }
            }
            self.end_line(used >= grid.columns);
        }
    }

    fn add(&mut self, letter: char, place: CellPosition) {
        let is_exact = self.kind == SweepKind::Exact;
        if is_exact || !letter.is_whitespace() {
            self.letters.push(letter);
            self.places.push(place);
        }
    }

    /// A line that is full goes on in the next one.
    fn end_line(&mut self, is_full: bool) {
        if self.kind == SweepKind::Exact && !is_full {
            self.letters.push('\n');
            self.places.push(CellPosition::End);
        }
    }

    fn mask(&self, sweep: &Sweep<'_>, grid: &mut Grid, scrollback: &mut Scrollback) {
        let mut lines = BTreeMap::<usize, Vec<usize>>::new();
        for found in sweep.find(&self.letters) {
            match self.places.get(found) {
                Some(CellPosition::Line { number, at }) => {
                    lines.entry(*number).or_default().push(*at)
                }
                Some(CellPosition::Cell { row, column }) => {
                    if let Some(row) = grid.row(*row) {
                        row.replace(*column, char::from(MASK));
                    }
                }
                Some(CellPosition::End) | None => {}
            }
        }
        for (number, places) in lines {
            scrollback.replace(number, &places, char::from(MASK));
        }
    }
}
