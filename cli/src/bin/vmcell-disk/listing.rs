//! Prints entries as they arrive, so that memory does not grow with their
//! number.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use vmcell::{disk::DiskProblem, files::Entry};
use vmcell_cli::show::{Page, Table, entry};

use crate::problems::Problems;

/// How entries are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Names,
    /// Names, unchanged and each with a NUL byte behind it.
    Zero,
    Long,
    Json,
}

/// Whether inode numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    None,
    Inode,
}

/// Prints entries with the paths that `shown` returns for them.
pub(crate) fn print(
    entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
    style: Style,
    number: Number,
    shown: impl Fn(&Entry) -> PathBuf,
) -> anyhow::Result<u8> {
    let mut lines = Lines {
        page: Page::new(),
        problems: Problems::new(style == Style::Json),
        shown,
    };
    let written = match (style, number) {
        (Style::Names, _) => lines.names(entries, number),
        (Style::Zero, _) => lines.zero(entries),
        (Style::Json, _) => {
            lines.each(entries, |entry, _, page| page.json(&entry::as_json(&entry)))
        }
        (Style::Long, Number::None) => lines.rows(entries, entry::table(), entry::row),
        (Style::Long, Number::Inode) => {
            let [mode, links, owner, group, size, modified] = entry::HEADER;
            let header = ["INODE", mode, links, owner, group, size, modified];
            lines.rows(entries, Table::with_tail(header, "NAME"), |entry| {
                let [mode, links, owner, group, size, modified] = entry::row(entry);
                let inode = entry.inode.to_string();
                [inode, mode, links, owner, group, size, modified]
            })
        }
    };
    let code = lines.page.finish(written)?;
    Ok(lines.problems.finish(code))
}

struct Lines<S> {
    page: Page,
    problems: Problems,
    shown: S,
}

impl<S: Fn(&Entry) -> PathBuf> Lines<S> {
    fn names(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
        number: Number,
    ) -> io::Result<()> {
        self.each(entries, |entry, path, page| {
            let before = match number {
                Number::None => String::new(),
                Number::Inode => format!("{} ", entry.inode),
            };
            page.named(&before, &path, entry::colour(&entry), "")
        })
    }

    fn zero(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
    ) -> io::Result<()> {
        self.each(entries, |_, path, page| {
            page.write_all(path.as_os_str().as_encoded_bytes())?;
            page.write_all(b"\0")
        })
    }

    fn rows<const N: usize>(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
        mut table: Table<N>,
        row: impl Fn(&Entry) -> [String; N],
    ) -> io::Result<()> {
        self.each(entries, |entry, path, page| {
            let label = entry::label(&entry, &path, page.is_coloured());
            table.add_with_tail(row(&entry), label);
            match table.has_portion() {
                true => table.print(page),
                false => Ok(()),
            }
        })?;
        table.print(&mut self.page)
    }

    fn each(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
        mut print: impl FnMut(Entry, PathBuf, &mut Page) -> io::Result<()>,
    ) -> io::Result<()> {
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let path = (self.shown)(&entry);
                    print(entry, path, &mut self.page)?;
                }
                Err(problem) => self.problems.add(&problem, &mut self.page)?,
            }
        }
        Ok(())
    }
}
