use super::{emulator::Emulator, row::Row, style::Style};
use crate::terminal::size::TerminalSize;

/// What a terminal's screen looked like at one moment.
///
/// The text in it comes from the guest and can say anything, but holds no control
/// characters and none that hide or reorder others: it can be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Screen {
    /// How many columns and rows it has.
    pub size: TerminalSize,
    /// Where the cursor was.
    pub cursor: ScreenCursor,
    /// What the program calls itself, in at most 256 characters. Often empty.
    pub title: String,
    /// Whether it is the alternate screen, which editors and pagers draw on and
    /// leave without a trace.
    pub alternate: bool,
    /// Whether it can be relied on.
    pub health: ScreenHealth,
    pub(super) rows: Vec<Row>,
}

/// Where a cursor was, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenCursor {
    /// From the top.
    pub row: u16,
    /// From the left.
    pub column: u16,
    /// Whether the program wants it to be seen.
    pub visible: bool,
}

/// Whether a screen can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScreenHealth {
    /// It was made of every byte that the program printed.
    Good,
    /// Bytes are missing since the program last cleared it: there may be rubbish,
    /// and something may not be there.
    Incomplete,
}

/// Neighbours in a row that look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins, counted from 0.
    pub column: u16,
    /// How many columns it takes. Wide characters take two, so that need not be the
    /// number of characters.
    pub columns: u16,
    /// What it says.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

impl Screen {
    /// What a new terminal would show after all this was printed, in pieces that
    /// are cut anywhere.
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

    /// All rows with newlines between them, without blanks at the end of rows and
    /// without empty rows at the end.
    pub fn text(&self) -> String {
        join_rows(&self.rows)
    }

    /// The text of each row, without blanks at its end.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = String> {
        self.rows.iter().map(Row::text)
    }

    /// The text of a row, without blanks at its end. None if there is no such row.
    pub fn line(&self, row: u16) -> Option<String> {
        self.rows.get(usize::from(row)).map(Row::text)
    }

    /// The text of a row and how it looks, from left to right. What is left out is
    /// blank and of no colour. Nothing if there is no such row.
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
        let rest = row.map(Row::trailing_background).unwrap_or_default();
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

/// The text of rows with newlines between them.
pub(super) fn join_rows(rows: &[Row]) -> String {
    let lines: Vec<_> = rows.iter().map(Row::text).collect();
    let used = lines.iter().rposition(|line| !line.is_empty());
    let used = used.map_or(0, |last| last.saturating_add(1));
    lines.into_iter().take(used).collect::<Vec<_>>().join("\n")
}
