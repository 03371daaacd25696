//! `vmcell-disk sha256`: prints checksums of files.

use std::{
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::Args;
use vmcell::{
    disk::{Disk, DiskError},
    files::{Entry, EntryKind, WalkOptions},
};
use vmcell_cli::show::{SafeStdout, entry, name};
use vmcell_tree::json::hex;

use crate::{
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
Paths are relative to the root of the disk, so that `sha256sum -c` can check an exported tree.

Examples:
  vmcell-disk sha256 stopped.qcow2 /etc/passwd /bin
  vmcell-disk sha256 stopped.qcow2 / > sums; vmcell-disk export stopped.qcow2 / out
  (cd out && sha256sum -c ../sums)";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sha256Arguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Files, or directories to search for files recursively.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Print JSON, one file on each line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn sha256(arguments: &Sha256Arguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let mut printer = ChecksumPrinter {
        json: arguments.json,
        out: SafeStdout::new(),
        problems: Problems::new(arguments.json),
    };
    let mut written = printer.problems.add_disk(&disk, &mut printer.out);
    for path in &arguments.paths {
        written = written.and_then(|()| printer.path(&disk, &absolute(path)));
    }
    let code = printer.out.finish(written)?;
    Ok(printer.problems.finish(code))
}

struct ChecksumPrinter {
    json: bool,
    out: SafeStdout,
    problems: Problems,
}

impl ChecksumPrinter {
    fn path(&mut self, disk: &Disk, path: &Path) -> io::Result<()> {
        let entries = match check_kind(disk, path).and_then(|()| disk.walk(path, walk())) {
            Ok(entries) => entries,
            Err(error) => return self.problems.add_at(path, &error, &mut self.out),
        };
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry)?,
                Err(problem) => self.problems.add(&problem, &mut self.out)?,
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let Some(digest) = &entry.sha256 else {
            return Ok(());
        };
        if self.json {
            return self.out.json(&entry::as_json(entry));
        }
        let path = entry.path.as_os_str().as_bytes();
        let escaped = escaped(path);
        let mark = if escaped == path { "" } else { "\\" };
        write!(self.out, "{mark}{}  ", hex(digest))?;
        self.out.untrusted_text(&escaped, "")?;
        self.out.write_all(b"\n")
    }
}

fn walk() -> WalkOptions {
    WalkOptions::new().with_sha256()
}

/// Fails for a path that is neither a file nor a directory.
fn check_kind(disk: &Disk, path: &Path) -> Result<(), DiskError> {
    match disk.stat(path)?.kind {
        EntryKind::File | EntryKind::Directory => Ok(()),
        _ => Err(DiskError::WrongKind {
            path: name::printable(path),
            wanted: "regular file or directory",
        }),
    }
}

/// Escapes a name so that it fits on one line, like `sha256sum`.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            byte => escaped.push(*byte),
        }
    }
    escaped
}
