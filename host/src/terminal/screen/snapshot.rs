use super::{emulator::Emulator, row::Row, style::Style};
use crate::terminal::size::TerminalSize;

/// A snapshot of a terminal's screen.
///
/// Its text comes from the guest, but it is safe to print: it holds no control
/// characters and none that hide or reorder others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Screen {
    /// Its size.
    pub size: TerminalSize,
    /// The cursor.
    pub cursor: ScreenCursor,
    /// The window title that the program has set, at most 256 characters. Often
    /// empty.
    pub title: String,
    /// Whether it is the alternate screen, which editors and pagers use.
    pub alternate: bool,
    /// Whether output was lost.
    pub health: ScreenHealth,
    pub(super) rows: Vec<Row>,
}

/// The position of a cursor, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScreenCursor {
    /// From the top.
    pub row: u16,
    /// From the left.
    pub column: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// Whether a screen shows all output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScreenHealth {
    /// No byte of the output is missing.
    Good,
    /// Since the program last cleared it, bytes were lost, or sequences were not
    /// executed because so many of them would take too long: text may be wrong or
    /// missing.
    Incomplete,
}

/// Adjacent characters of a row that have the same style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first column, counted from 0.
    pub column: u16,
    /// How many columns it takes. Wide characters take two.
    pub columns: u16,
    /// Its text.
    pub text: String,
    /// Its style.
    pub style: Style,
}

impl ScreenHealth {
    /// Returns a stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Incomplete => "incomplete",
        }
    }
}

impl Screen {
    /// Returns the screen of a new terminal after this output, which may be split
    /// anywhere.
    ///
    /// ```
    /// # fn main() -> Result<(), vmcell::Error> {
    /// use vmcell::terminal::{Screen, TerminalSize};
    ///
    /// let printed = b"  50%\r 100%\x1b[K\r\n\x1b[1mdone\x1b[0m";
    /// let screen = Screen::render(TerminalSize::new(80, 24)?, [&printed[..]]);
    /// assert_eq!(screen.text(), " 100%\ndone");
    /// # Ok(())
    /// # }
    /// ```
    pub fn render<'a>(size: TerminalSize, printed: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut emulator = Emulator::new(size, 0);
        for piece in printed {
            emulator.feed(piece);
        }
        emulator.screen()
    }

    /// Returns all rows with newlines between them, without trailing blanks and
    /// without empty rows at the end.
    pub fn text(&self) -> String {
        join_rows(&self.rows)
    }

    /// Returns the text of each row, without trailing blanks.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = String> {
        self.rows.iter().map(Row::text)
    }

    /// Returns the text of a row without trailing blanks, or `None` if there is no
    /// such row.
    pub fn line(&self, row: u16) -> Option<String> {
        self.rows.get(usize::from(row)).map(Row::text)
    }

    /// Returns the text and styles of a row, from left to right, without blanks of
    /// the default style. Empty if there is no such row.
    pub fn spans(&self, row: u16) -> Vec<Span> {
        let mut spans = Vec::<Span>::new();
        let row = self.rows.get(usize::from(row));
        for cell in row.into_iter().flat_map(|row| row.cells()) {
            let columns = u16::try_from(cell.columns()).unwrap_or(0);
            match spans.last_mut().filter(|span| span.style == cell.style) {
                Some(span) => {
                    cell.push_to(&mut span.text);
                    span.columns = span.columns.saturating_add(columns);
                }
                None => spans.push(Span {
                    column: spans
                        .last()
                        .map_or(0, |span| span.column.saturating_add(span.columns)),
                    columns,
                    text: cell.characters().collect(),
                    style: cell.style,
                }),
            }
        }
        let end = spans
            .last()
            .map_or(0, |span| span.column.saturating_add(span.columns));
        let rest = row.map(Row::tail_colour).unwrap_or_default();
        let missing = self.size.columns.saturating_sub(end);
        if rest != super::Colour::Default && missing > 0 {
            spans.push(Span {
                column: end,
                columns: missing,
                text: " ".repeat(missing.into()),
                style: Style::blank(rest),
            });
        }
        spans.retain(|span| span.style != Style::default() || !span.text.trim().is_empty());
        spans
    }
}

/// Returns the text of rows with newlines between them.
pub(super) fn join_rows(rows: &[Row]) -> String {
    let lines: Vec<_> = rows.iter().map(Row::text).collect();
    let used = lines.iter().rposition(|line| !line.is_empty());
    let used = used.map_or(0, |last| last.saturating_add(1));
    lines.into_iter().take(used).collect::<Vec<_>>().join("\n")
}
