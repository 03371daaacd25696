use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::Args;
use vmcell::Error;

/// What is taken of a tree.
#[derive(Debug, Args)]
pub struct Selection {
    /// Only what this line names, written as in a .gitignore file.
    #[arg(long, value_name = "LINE")]
    include: Vec<OsString>,
    /// Not what this line names, written as in a .gitignore file.
    #[arg(long, value_name = "LINE")]
    exclude: Vec<OsString>,
    /// Not what the lines of this file name, for example .gitignore.
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,
}

impl Selection {
    /// The lines that say what is taken; none: everything.
    pub fn included(&self) -> &[OsString] {
        &self.include
    }

    /// The lines that say what is not. Those of files come first, so that one of
    /// `--exclude` can bring back what they name.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn excluded(&self) -> Result<Vec<OsString>, Error> {
        let mut lines = Vec::new();
        for path in &self.exclude_from {
            lines.extend(read_lines(path)?);
        }
        lines.extend(self.exclude.iter().cloned());
        Ok(lines)
    }
}

fn read_lines(path: &Path) -> Result<Vec<OsString>, Error> {
    let contents = fs::read(path).map_err(|error| Error::BadFile {
        what: "exclude file",
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let lines = contents.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Ok(lines
        .map(|line| OsStr::from_bytes(line).to_owned())
        .collect())
}
