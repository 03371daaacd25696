//! Masks secrets on a screen.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::{display::Display, emulator::Emulator, grid::Grid, scrollback::Scrollback};
use crate::redaction::{MASK, ScanMode, SecretScan};

/// Lines that are searched again, since a secret may begin in them.
const OVERLAP_LINES: usize = 64;

impl Emulator {
    /// Masks secrets on both screens, in the scrollback, and in titles.
    pub(crate) fn redact(&mut self, scan: &SecretScan<'_>) {
        let Display {
            active,
            inactive,
            scrollback,
            title,
            modes,
            ..
        } = &mut self.display;
        let (main, alternate) = match modes.alternate_screen {
            false => (active, inactive),
            true => (inactive, active),
        };
        let unsearched = scrollback.take_unsearched();
        let lines = match scan.mode() {
            ScanMode::Exact => unsearched.saturating_add(OVERLAP_LINES),
            ScanMode::Completed { lines } => lines,
        };
        let mut text = ScreenText::new(scan.mode());
        text.add_lines(scrollback, lines, main.columns);
        text.add_rows(main);
        text.mask(scan, main, scrollback);
        let mut text = ScreenText::new(scan.mode());
        text.add_rows(alternate);
        text.mask(scan, alternate, scrollback);
        title.texts_mut().for_each(|text| scan.mask(text));
    }
}

/// The concatenated letters of lines and rows, with their positions.
struct ScreenText {
    mode: ScanMode,
    letters: Zeroizing<Vec<char>>,
    positions: Vec<LetterPosition>,
}

/// The position of a letter.
#[derive(Clone, Copy)]
enum LetterPosition {
    /// In a line of the scrollback.
    Line { number: usize, at: usize },
    /// On the screen.
    Cell { row: usize, column: usize },
    /// Not a letter, but the end of a line.
    End,
}

impl ScreenText {
    fn new(mode: ScanMode) -> Self {
        Self {
            mode,
            letters: Zeroizing::default(),
            positions: Vec::new(),
        }
    }

    fn add_lines(&mut self, scrollback: &Scrollback, lines: usize, columns: usize) {
        for (number, line) in scrollback.numbered(lines) {
            let mut length = 0;
            for (at, letter) in line.chars().enumerate() {
                self.add(letter, LetterPosition::Line { number, at });
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
                        LetterPosition::Cell {
                            row: number,
                            column,
                        },
                    );
                }
            }
            self.end_line(used >= grid.columns);
        }
    }

    fn add(&mut self, letter: char, position: LetterPosition) {
        let is_exact = self.mode == ScanMode::Exact;
        if is_exact || !letter.is_whitespace() {
            self.letters.push(letter);
            self.positions.push(position);
        }
    }

    /// Ends a line. A full line is taken to continue in the next one.
    fn end_line(&mut self, is_full: bool) {
        if self.mode == ScanMode::Exact && !is_full {
            self.letters.push('\n');
            self.positions.push(LetterPosition::End);
        }
    }

    fn mask(&self, scan: &SecretScan<'_>, grid: &mut Grid, scrollback: &mut Scrollback) {
        let mut lines = BTreeMap::<usize, Vec<usize>>::new();
        for found in scan.find(&self.letters) {
            match self.positions.get(found) {
                Some(LetterPosition::Line { number, at }) => {
                    lines.entry(*number).or_default().push(*at)
                }
                Some(LetterPosition::Cell { row, column }) => {
                    if let Some(row) = grid.row(*row) {
                        row.replace(*column, char::from(MASK));
                    }
                }
                Some(LetterPosition::End) | None => {}
            }
        }
        for (number, positions) in lines {
            scrollback.replace(number, &positions, char::from(MASK));
        }
    }
}
