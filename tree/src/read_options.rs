/// Which range of a file to read, and how many bytes at most.
///
/// ```
/// use vmcell_tree::ReadOptions;
///
/// let header = ReadOptions::new().range(0, 512);
/// let whole_but_bounded = ReadOptions::new().limit(65_536);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes to read; fewer are read if the file ends earlier.
    pub length: u64,
    /// Reading more bytes than this fails.
    pub limit: Option<u64>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadOptions {
    /// Reads the whole file.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            offset: 0,
            length: u64::MAX,
            limit: None,
        }
    }

    /// Reads `length` bytes from `offset`, or fewer if the file ends earlier.
    #[must_use]
    pub const fn range(mut self, offset: u64, length: u64) -> Self {
        self.offset = offset;
        self.length = length;
        self
    }

    /// Fails if there are more bytes than this, instead of returning a
    /// truncated file.
    #[must_use]
    pub const fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }
}
