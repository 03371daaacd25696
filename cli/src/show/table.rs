use std::io::{self, Write};

use vmcell::printable;

/// Rows under a header, in aligned columns.
///
/// Rows may be printed in portions, so that their number does not matter: a
/// column is as wide as its widest cell until then.
#[derive(Debug)]
pub struct Table<const N: usize> {
    rows: Vec<Row<N>>,
    widths: [usize; N],
}

#[derive(Debug)]
struct Row<const N: usize> {
    cells: [String; N],
    /// What follows behind the last column, as it is.
    tail: String,
}

/// After so many rows the widths of the columns are known well enough.
const PORTION: usize = 1000;

impl<const N: usize> Table<N> {
    /// An empty table.
    pub fn new(header: [&str; N]) -> Self {
        Self::with_tail(header, "")
    }

    /// An empty table of which each row has something behind its columns.
    pub fn with_tail(header: [&str; N], tail: &str) -> Self {
        let mut table = Self {
            rows: Vec::new(),
            widths: [0; N],
        };
        table.add_with_tail(header.map(str::to_owned), tail.to_owned());
        table
    }

    /// Adds a row. What would not stay in its line is replaced.
    pub fn add(&mut self, cells: [String; N]) {
        self.add_with_tail(cells, String::new());
    }

    /// Adds a row with something behind its columns, which is printed as it is:
    /// whoever adds it sees that it stays in its line and drives no terminal.
    pub fn add_with_tail(&mut self, cells: [String; N], tail: String) {
        let cells = cells.map(in_its_line);
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.chars().count());
        }
        self.rows.push(Row { cells, tail });
    }

    /// Whether there are enough rows to print a portion of them.
    pub fn has_portion(&self) -> bool {
        self.rows.len() >= PORTION
    }

    /// Prints it to standard output.
    ///
    /// # Errors
    /// If that cannot be written, but for a reader that has gone away.
    pub fn show(&mut self) -> anyhow::Result<()> {
        match self.print(&mut io::stdout()) {
            // Who has gone away has seen enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Prints the rows that were not printed yet.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn print(&mut self, writer: &mut impl Write) -> io::Result<()> {
        for Row { cells, tail } in self.rows.drain(..) {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(self.widths) {
                let missing = width.saturating_sub(cell.chars().count());
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', missing + 2));
            }
            line.push_str(&tail);
            writeln!(writer, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn in_its_line(cell: String) -> String {
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
        let mut table = Table::with_tail(["SIZE"], "NAME");
        table.add_with_tail(["100000".to_owned()], "\x1b[1mx\x1b[0m".to_owned());
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        table.add_with_tail(["1".to_owned()], "y".to_owned());
        table.print(&mut text).unwrap();
        let expected = "SIZE    NAME\n100000  \x1b[1mx\x1b[0m\n1       y\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        assert!(!table.has_portion());
    }
}
