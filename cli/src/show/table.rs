use std::io::{self, Write};

use vmcell::printable;

/// Rows under a header, in aligned columns.
///
/// Rows are printed in chunks, so that memory does not grow with their number.
/// The width of a column is that of its widest cell so far.
#[derive(Debug)]
pub struct Table<const N: usize> {
    rows: Vec<Row<N>>,
    widths: [usize; N],
}

#[derive(Debug)]
struct Row<const N: usize> {
    cells: [String; N],
    /// Text after the last column, printed without escaping or padding.
    raw: String,
}

/// The number of rows in a chunk.
const ROWS_PER_CHUNK: usize = 1000;

impl<const N: usize> Table<N> {
    /// Creates an empty table.
    pub fn new(header: [&str; N]) -> Self {
        Self::with_raw_column(header, "")
    }

    /// Creates an empty table whose rows have text after their columns.
    pub fn with_raw_column(header: [&str; N], raw: &str) -> Self {
        let mut table = Self {
            rows: Vec::new(),
            widths: [0; N],
        };
        table.add_with_raw_column(header.map(str::to_owned), raw.to_owned());
        table
    }

    /// Adds a row. Line breaks and control characters are replaced.
    pub fn add(&mut self, cells: [String; N]) {
        self.add_with_raw_column(cells, String::new());
    }

    /// Adds a row with text after its columns. The text is printed as is: the
    /// caller must have removed line breaks and control characters.
    pub fn add_with_raw_column(&mut self, cells: [String; N], raw: String) {
        let cells = cells.map(sanitized_cell);
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.chars().count());
        }
        self.rows.push(Row { cells, raw });
    }

    /// Returns whether there are enough rows to print a chunk of them.
    pub fn has_chunk(&self) -> bool {
        self.rows.len() >= ROWS_PER_CHUNK
    }

    /// Prints the table to standard output.
    ///
    /// # Errors
    /// If that fails, except because the reader has closed the pipe.
    pub fn print_to_stdout(&mut self) -> anyhow::Result<()> {
        match self.print(&mut io::stdout()) {
            // A reader that has closed the pipe has read enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Prints the rows that were not printed yet.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn print(&mut self, writer: &mut impl Write) -> io::Result<()> {
        for Row { cells, raw } in self.rows.drain(..) {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(self.widths) {
                let padding = width.saturating_sub(cell.chars().count());
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', padding + 2));
            }
            line.push_str(&raw);
            writeln!(writer, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn sanitized_cell(cell: String) -> String {
    if cell.bytes().all(|byte| matches!(byte, b'!'..=b'~')) {
        return cell;
    }
    let line = printable(cell.as_bytes()).replace(['\n', '\t'], " ");
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_in_its_line_and_column() {
        let mut table = Table::new(["ID", "TAG", "COMMAND"]);
        table.add(["1", "schön", "sh -c a\nb\x1b[2J"].map(str::to_owned));
        table.add(["200", "x", ""].map(str::to_owned));
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        let expected = "\
ID   TAG    COMMAND
1    schön  sh -c a b\u{fffd}[2J
200  x
";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn later_portions_have_the_columns_of_the_first() {
        let mut table = Table::with_raw_column(["SIZE"], "NAME");
        table.add_with_raw_column(["100000".to_owned()], "\x1b[1mx\x1b[0m".to_owned());
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        table.add_with_raw_column(["1".to_owned()], "y".to_owned());
        table.print(&mut text).unwrap();
        let expected = "SIZE    NAME\n100000  \x1b[1mx\x1b[0m\n1       y\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        assert!(!table.has_chunk());
    }
}
