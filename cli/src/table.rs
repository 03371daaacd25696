//! Tables for people.

use std::io::{self, Write};

use vmcell::printable;

/// Rows under a header, in aligned columns.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(header: [&str; N]) -> Self {
        Self {
            rows: vec![header.map(str::to_owned)],
        }
    }

    /// Adds a row. What would not stay in its line is replaced.
    pub(crate) fn add(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| {
            let line = printable(cell.as_bytes()).replace(['\n', '\t'], " ");
            line.trim_end().to_owned()
        }));
    }

    /// Prints it to standard output.
    pub(crate) fn show(&self) -> anyhow::Result<()> {
        match self.print(&mut io::stdout()) {
            // A reader that has gone away has seen enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn print(&self, writer: &mut impl Write) -> io::Result<()> {
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        });
        for row in &self.rows {
            let padded = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:width$}"));
            let line = padded.collect::<Vec<_>>().join("  ");
            writeln!(writer, "{}", line.trim_end())?;
        }
        Ok(())
    }
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
}
