/// Which part of a file is read, and how much of it at most.
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
    /// Where the part begins.
    pub offset: u64,
    /// How many bytes it has; fewer if the file ends before.
    pub length: u64,
    /// More bytes than this are an error.
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

    /// Reads so many bytes from an offset on; fewer if the file ends before.
    #[must_use]
    pub const fn range(mut self, offset: u64, length: u64) -> Self {
        self.offset = offset;
        self.length = length;
        self
    }

    /// Fails if there are more bytes than this, so that a part never looks like
    /// the whole.
    #[must_use]
    pub const fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }
}
