use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use vmcell_wire::pattern::Filter;

use crate::error::Error;

/// Lines like those of a `.gitignore` file, as they go to the guest.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterLines {
    include: Vec<u8>,
    exclude: Vec<u8>,
}

impl FilterLines {
    pub(crate) fn include(&mut self, line: &OsStr) {
        add(&mut self.include, line);
    }

    pub(crate) fn exclude(&mut self, line: &OsStr) {
        add(&mut self.exclude, line);
    }

    pub(crate) fn included(&self) -> &[u8] {
        &self.include
    }

    pub(crate) fn excluded(&self) -> &[u8] {
        &self.exclude
    }

    /// The filter, if the lines make sense.
    pub(crate) fn compile(&self) -> Result<Filter, Error> {
        Filter::new(&self.include, &self.exclude).map_err(|error| Error::Invalid(error.to_string()))
    }
}

fn add(lines: &mut Vec<u8>, line: &OsStr) {
    lines.extend_from_slice(line.as_bytes());
    lines.push(b'\n');
}
