//! `vmcell-disk tree`: prints a directory tree.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, value_parser};
use vmcell::{
    disk::DiskEntries,
    files::{Entry, EntryKind, WalkOptions},
};
use vmcell_cli::show::{SafeStdout, entry};

use crate::{
    image::{ImageOptions, absolute},
    listing::{self, Inodes, Style},
    problems::Problems,
};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk tree stopped.qcow2 /workspace
  vmcell-disk tree base.ext4 --depth 2";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TreeArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Directory.
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Descend at most N levels below the directory.
    #[arg(long, short = 'L', value_name = "N", value_parser = value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Does nothing: names that start with a dot are always printed.
    #[arg(long, short)]
    all: bool,
    /// Print the entries as JSON, one on each line, like `ls -R`.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn tree(arguments: &TreeArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let path = absolute(&arguments.path);
    let walk = WalkOptions::new().depth(arguments.depth.unwrap_or(u32::MAX));
    if arguments.json {
        let entries = disk.walk(&path, walk)?;
        return listing::print(&disk, entries, Style::Json, Inodes::Hidden, entry::absolute);
    }
    let top = disk.stat(&path)?;
    let mut printer = TreePrinter {
        out: SafeStdout::new(),
        problems: Problems::new(false),
        top_components: path.components().count(),
        branches: Vec::new(),
        directories: 0,
        others: 0,
    };
    let entries = disk.walk(&path, walk.without_names())?;
    let written = printer
        .problems
        .add_disk(&disk, &mut printer.out)
        .and_then(|()| printer.print(&top, &path, entries));
    let code = printer.out.finish(written)?;
    Ok(printer.problems.finish(code))
}

struct TreePrinter {
    out: SafeStdout,
    problems: Problems,
    /// The number of components of the top directory's path.
    top_components: usize,
    /// Whether the entry on each level is the last of its directory.
    branches: Vec<bool>,
    directories: u64,
    others: u64,
}

impl TreePrinter {
    fn print(&mut self, top: &Entry, path: &Path, mut entries: DiskEntries<'_>) -> io::Result<()> {
        self.out.path_line("", path, entry::colour(top), "")?;
        if top.kind == EntryKind::Directory {
            while let Some(entry) = entries.next() {
                match entry {
                    Ok(entry) => self.entry(&entry, entries.is_last())?,
                    Err(problem) => self.problems.add(&problem, &mut self.out)?,
                }
            }
        }
        let count = |count: u64, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let directories = count(self.directories, "directory", "directories");
        let others = count(self.others, "file", "files");
        writeln!(self.out, "\n{directories}, {others}")
    }

    fn entry(&mut self, entry: &Entry, is_last: bool) -> io::Result<()> {
        match entry.kind {
            EntryKind::Directory => self.directories += 1,
            _ => self.others += 1,
        }
        let depth = entry::absolute(entry).components().count() - self.top_components;
        self.branches.truncate(depth.saturating_sub(1));
        for is_last_branch in &self.branches {
            let indent = if *is_last_branch { "    " } else { "│   " };
            self.out.write_all(indent.as_bytes())?;
        }
        self.branches.push(is_last);
        let branch = if is_last { "└── " } else { "├── " };
        // Names are always made printable, because a tree is meant for people.
        let name = Path::new(entry.name().unwrap_or_default());
        let label = entry::label(entry, name, self.out.is_coloured());
        writeln!(self.out, "{branch}{label}")
    }
}
