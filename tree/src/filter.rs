use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use vmcell_wire::pattern::{Filter, PatternError};

/// Lines of the `.gitignore` syntax: what is included and what is excluded.
#[derive(Clone, Debug, Default)]
pub struct FilterLines {
    include: Vec<u8>,
    exclude: Vec<u8>,
}

impl FilterLines {
    /// Adds a line that includes.
    pub fn include(&mut self, line: &OsStr) {
        add(&mut self.include, line);
    }

    /// Adds a line that excludes.
    pub fn exclude(&mut self, line: &OsStr) {
        add(&mut self.exclude, line);
    }

    /// Returns the lines that include, each with its newline.
    pub fn included(&self) -> &[u8] {
        &self.include
    }

    /// Returns the lines that exclude, each with its newline.
    pub fn excluded(&self) -> &[u8] {
        &self.exclude
    }

    /// Compiles the lines into a filter.
    ///
    /// # Errors
    /// A line is not a valid pattern.
    pub fn compile(&self) -> Result<Filter, PatternError> {
        Filter::new(&self.include, &self.exclude)
    }
}

fn add(lines: &mut Vec<u8>, line: &OsStr) {
    lines.extend_from_slice(line.as_bytes());
    lines.push(b'\n');
}
