use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use vmcell_wire::pattern::{Filter, PatternError};

/// Include and exclude patterns in `.gitignore` syntax.
#[derive(Clone, Debug, Default)]
pub struct FilterLines {
    include: Vec<u8>,
    exclude: Vec<u8>,
}

impl FilterLines {
    /// Adds an include pattern.
    pub fn include(&mut self, line: &OsStr) {
        add(&mut self.include, line);
    }

    /// Adds an exclude pattern.
    pub fn exclude(&mut self, line: &OsStr) {
        add(&mut self.exclude, line);
    }

    /// Returns the include patterns, each followed by a newline.
    pub fn included(&self) -> &[u8] {
        &self.include
    }

    /// Returns the exclude patterns, each followed by a newline.
    pub fn excluded(&self) -> &[u8] {
        &self.exclude
    }

    /// Compiles the patterns into a filter.
    ///
    /// # Errors
    /// If a line is not a valid pattern.
    pub fn compile(&self) -> Result<Filter, PatternError> {
        Filter::new(&self.include, &self.exclude)
    }
}

fn add(lines: &mut Vec<u8>, line: &OsStr) {
    lines.extend_from_slice(line.as_bytes());
    lines.push(b'\n');
}
