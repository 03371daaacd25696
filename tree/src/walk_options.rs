use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::FilterLines;

/// Which entries below a directory to list, and with which details.
///
/// ```
/// use vmcell_tree::WalkOptions;
///
/// let sources = WalkOptions::new().glob("**/*.rs").exclude("target/");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WalkOptions {
    /// How many levels below the directory to list.
    pub depth: u32,
    /// Whether to list the directory itself.
    pub top: bool,
    /// The glob pattern that paths must match. An empty one matches every path.
    pub glob: Vec<u8>,
    /// The include and exclude patterns.
    pub filter: FilterLines,
    /// Whether to sort the entries of each directory by name.
    pub sorted: bool,
    /// Whether to compute the SHA-256 of each file.
    pub digest: bool,
    /// Whether to look up the names of owners and groups.
    pub names: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl WalkOptions {
    /// Lists everything below the directory, sorted by name.
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

    /// Lists `levels` levels below the directory; 1 lists only its own entries.
    #[must_use]
    pub const fn depth(mut self, levels: u32) -> Self {
        self.depth = levels;
        self
    }

    /// Lists the directory itself first.
    #[must_use]
    pub const fn with_top(mut self) -> Self {
        self.top = true;
        self
    }

    /// Lists only paths, relative to the directory, that match this pattern:
    /// `*` and `?` match within a name, `**` any number of directories, `[a-z]`
    /// a range.
    #[must_use]
    pub fn glob(mut self, pattern: impl AsRef<OsStr>) -> Self {
        self.glob = pattern.as_ref().as_bytes().to_vec();
        self
    }

    /// Lists only entries that match a pattern in `.gitignore` syntax. Can be
    /// called several times.
    #[must_use]
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Skips entries that match a pattern in `.gitignore` syntax. Can be called
    /// several times; a later `!pattern` can include again what an earlier one
    /// excluded.
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

    /// Computes the SHA-256 of each file.
    #[must_use]
    pub const fn with_sha256(mut self) -> Self {
        self.digest = true;
        self
    }

    /// Does not look up the names of owners and groups.
    #[must_use]
    pub const fn without_names(mut self) -> Self {
        self.names = false;
        self
    }
}
