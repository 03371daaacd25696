use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::FilterLines;

/// Which entries below a directory are listed, and with what.
///
/// ```
/// use vmcell_tree::WalkOptions;
///
/// let sources = WalkOptions::new().glob("**/*.rs").exclude("target/");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WalkOptions {
    /// How many levels below the directory are listed.
    pub depth: u32,
    /// Whether the directory itself is listed.
    pub top: bool,
    /// The pattern that paths must match. Empty: all do.
    pub glob: Vec<u8>,
    /// What is included and excluded.
    pub filter: FilterLines,
    /// Whether each directory is listed in the order of its names.
    pub sorted: bool,
    /// Whether files come with their SHA-256.
    pub digest: bool,
    /// Whether entries come with the names of their owners and groups.
    pub names: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl WalkOptions {
    /// Everything below the directory, each directory in the order of its
    /// names.
    #[must_use]
    pub fn new() -> Self {
        Self {
            depth: u32::MAX,
            top: false,
            glob: Vec::new(),
            filter: FilterLines::default(),
            sorted: true,
            digest: false,
            names: true,
        }
    }

    /// Lists so many levels below the directory; 1: only its own entries.
    #[must_use]
    pub const fn depth(mut self, levels: u32) -> Self {
        self.depth = levels;
        self
    }

    /// Lists the directory itself too, first.
    #[must_use]
    pub const fn with_top(mut self) -> Self {
        self.top = true;
        self
    }

    /// Lists only paths that match this pattern, relative to the directory: `*` and
    /// `?` match within a name, `**` any number of directories, `[a-z]` a
    /// range.
    #[must_use]
    pub fn glob(mut self, pattern: impl AsRef<OsStr>) -> Self {
        self.glob = pattern.as_ref().as_bytes().to_vec();
        self
    }

    /// Lists only what matches a line of the `.gitignore` syntax. Can be called
    /// many times.
    #[must_use]
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Leaves out what matches a line of the `.gitignore` syntax. Can be called
    /// many times; a later line can include again what an earlier one excluded.
    #[must_use]
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.exclude(line.as_ref());
        self
    }

    /// Lists entries in the order of the file system, which is faster.
    #[must_use]
    pub const fn unsorted(mut self) -> Self {
        self.sorted = false;
        self
    }

    /// Adds the SHA-256 of each file's bytes.
    #[must_use]
    pub const fn with_sha256(mut self) -> Self {
        self.digest = true;
        self
    }

    /// Leaves out the names of owners and groups.
    #[must_use]
    pub const fn without_names(mut self) -> Self {
        self.names = false;
        self
    }
}
