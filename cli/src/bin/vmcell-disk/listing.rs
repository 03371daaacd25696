//! Prints entries as they arrive, so that memory does not grow with their
//! number.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use vmcell::{disk::DiskProblem, files::Entry};
use vmcell_cli::show::{SafeStdout, Table, entry};

use crate::problems::Problems;

/// How entries are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Names,
    /// Names, unchanged and each followed by a NUL byte.
    NulTerminated,
    Long,
    Json,
}

/// Whether inode numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inodes {
    Hidden,
    Shown,
}

/// Prints entries with the paths that `path_of` returns for them.
pub(crate) fn print(
    entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
    style: Style,
    inodes: Inodes,
    path_of: impl Fn(&Entry) -> PathBuf,
) -> anyhow::Result<u8> {
    let mut printer = ListingPrinter {
        out: SafeStdout::new(),
        problems: Problems::new(style == Style::Json),
        path_of,
    };
    let written = match (style, inodes) {
        (Style::Names, _) => printer.names(entries, inodes),
        (Style::NulTerminated, _) => printer.nul_terminated(entries),
        (Style::Json, _) => {
            printer.for_each_entry(entries, |entry, _, out| out.json(&entry::as_json(&entry)))
        }
        (Style::Long, Inodes::Hidden) => printer.rows(entries, entry::table(), entry::row),
        (Style::Long, Inodes::Shown) => {
            let [mode, links, owner, group, size, modified] = entry::HEADER;
            let header = ["INODE", mode, links, owner, group, size, modified];
            printer.rows(entries, Table::with_raw_column(header, "NAME"), |entry| {
                let [mode, links, owner, group, size, modified] = entry::row(entry);
                let inode = entry.inode.to_string();
                [inode, mode, links, owner, group, size, modified]
            })
        }
    };
    let code = printer.out.finish(written)?;
    Ok(printer.problems.finish(code))
}

struct ListingPrinter<S> {
    out: SafeStdout,
    problems: Problems,
    path_of: S,
}

impl<S: Fn(&Entry) -> PathBuf> ListingPrinter<S> {
    fn names(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
        inodes: Inodes,
    ) -> io::Result<()> {
        self.for_each_entry(entries, |entry, path, out| {
            let before = match inodes {
                Inodes::Hidden => String::new(),
                Inodes::Shown => format!("{} ", entry.inode),
            };
            out.path_line(&before, &path, entry::colour(&entry), "")
        })
    }

    fn nul_terminated(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
    ) -> io::Result<()> {
        self.for_each_entry(entries, |_, path, out| {
            out.write_all(path.as_os_str().as_encoded_bytes())?;
            out.write_all(b"\0")
        })
    }

    fn rows<const N: usize>(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
        mut table: Table<N>,
        row: impl Fn(&Entry) -> [String; N],
    ) -> io::Result<()> {
        self.for_each_entry(entries, |entry, path, out| {
            let label = entry::label(&entry, &path, out.is_coloured());
            table.add_with_raw_column(row(&entry), label);
            match table.has_chunk() {
                true => table.print(out),
                false => Ok(()),
            }
        })?;
        table.print(&mut self.out)
    }

    fn for_each_entry(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, DiskProblem>>,
        mut print: impl FnMut(Entry, PathBuf, &mut SafeStdout) -> io::Result<()>,
    ) -> io::Result<()> {
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let path = (self.path_of)(&entry);
                    print(entry, path, &mut self.out)?;
                }
                Err(problem) => self.problems.add(&problem, &mut self.out)?,
            }
        }
        Ok(())
    }
}
