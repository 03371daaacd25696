//! Prints entries as they arrive, so that memory does not grow with their
//! number.

use std::{
    io::{self, Write},
    iter,
    path::{Path, PathBuf},
};

use vmcell::{
    disk::{Disk, DiskError, DiskProblem},
    files::Entry,
};
use vmcell_cli::{
    options::size::human_readable,
    show::{SafeStdout, Table, entry},
};

use crate::problems::Problems;

/// An entry, or why it cannot be read.
pub(crate) type ListedEntry = Result<Entry, DiskProblem>;

/// How entries are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Names,
    /// Names, unchanged and each followed by a NUL byte.
    NulTerminated,
    Long(Sizes),
    Json,
}

/// How sizes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    Bytes,
    /// With a suffix, such as 1.5M.
    HumanReadable,
}

/// Whether inode numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inodes {
    Hidden,
    Shown,
}

/// Prints entries with the paths that `path_of` returns for them.
pub(crate) fn print(
    disk: &Disk,
    entries: impl Iterator<Item = ListedEntry>,
    style: Style,
    inodes: Inodes,
    path_of: impl Fn(&Entry) -> PathBuf,
) -> anyhow::Result<u8> {
    let mut printer = ListingPrinter {
        out: SafeStdout::new(),
        problems: Problems::new(style == Style::Json),
        path_of,
    };
    let opened = printer.problems.add_disk(disk, &mut printer.out);
    let written = opened.and_then(|()| match (style, inodes) {
        (Style::Names, _) => printer.names(entries, inodes),
        (Style::NulTerminated, _) => printer.nul_terminated(entries),
        (Style::Json, _) => {
            printer.for_each_entry(entries, |entry, _, out| out.json(&entry::as_json(&entry)))
        }
        (Style::Long(sizes), Inodes::Hidden) => {
            printer.rows(entries, entry::table(), |entry| row(entry, sizes))
        }
        (Style::Long(sizes), Inodes::Shown) => {
            let [mode, links, owner, group, size, modified] = entry::HEADER;
            let header = ["INODE", mode, links, owner, group, size, modified];
            printer.rows(entries, Table::with_raw_column(header, "NAME"), |entry| {
                let [mode, links, owner, group, size, modified] = row(entry, sizes);
                let inode = entry.inode.to_string();
                [inode, mode, links, owner, group, size, modified]
            })
        }
    });
    let code = printer.out.finish(written)?;
    Ok(printer.problems.finish(code))
}

/// Returns the result of a walk. If its path is a symlink to nothing, the link
/// is the only entry, as in ls(1) and find(1).
pub(crate) fn or_dangling_link<'d>(
    disk: &Disk,
    path: &Path,
    entries: Result<impl Iterator<Item = ListedEntry> + 'd, DiskError>,
) -> Result<Box<dyn Iterator<Item = ListedEntry> + 'd>, DiskError> {
    match entries {
        Ok(entries) => Ok(Box::new(entries)),
        Err(DiskError::DanglingLink { .. }) => {
            let link = disk.stat_link(path)?;
            Ok(Box::new(iter::once(Ok(link))))
        }
        Err(error) => Err(error),
    }
}

fn row(entry: &Entry, sizes: Sizes) -> [String; 6] {
    let [mode, links, owner, group, size, modified] = entry::row(entry);
    let size = match sizes {
        Sizes::Bytes => size,
        Sizes::HumanReadable => human_readable(entry.size),
    };
    [mode, links, owner, group, size, modified]
}

struct ListingPrinter<S> {
    out: SafeStdout,
    problems: Problems,
    path_of: S,
}

impl<S: Fn(&Entry) -> PathBuf> ListingPrinter<S> {
    fn names(
        &mut self,
        entries: impl Iterator<Item = ListedEntry>,
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

    fn nul_terminated(&mut self, entries: impl Iterator<Item = ListedEntry>) -> io::Result<()> {
        self.for_each_entry(entries, |_, path, out| {
            out.write_all(path.as_os_str().as_encoded_bytes())?;
            out.write_all(b"\0")
        })
    }

    fn rows<const N: usize>(
        &mut self,
        entries: impl Iterator<Item = ListedEntry>,
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
        entries: impl Iterator<Item = ListedEntry>,
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
