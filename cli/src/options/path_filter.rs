use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::Args;
use vmcell::Error;

/// Which paths of a tree are included.
#[derive(Debug, Args)]
pub struct PathFilter {
    /// Only include paths that match PATTERN (.gitignore syntax).
    #[arg(long, value_name = "PATTERN")]
    include: Vec<OsString>,
    /// Exclude paths that match PATTERN (.gitignore syntax).
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<OsString>,
    /// Exclude paths that match patterns in FILE, for example a .gitignore.
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,
}

impl PathFilter {
    /// Returns the patterns of paths to include. None: all are included.
    pub fn include_patterns(&self) -> &[OsString] {
        &self.include
    }

    /// Returns the patterns of paths to exclude. Those of files come first, so
    /// that `--exclude` can override them.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn exclude_patterns(&self) -> Result<Vec<OsString>, Error> {
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
