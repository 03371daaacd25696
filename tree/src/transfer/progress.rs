/// The progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeProgress<'a> {
    /// The number of entries so far, including the current one.
    pub entries: u64,
    /// The number of bytes of files so far.
    pub bytes: u64,
    /// The path of the current entry, relative to the top. It may contain any
    /// bytes: see [`printable_name`](crate::printable_name()).
    pub path: &'a [u8],
}

/// Called with the progress, on the thread that receives the tree.
pub type ProgressCallback<'a> = Box<dyn FnMut(TreeProgress<'_>) + Send + 'a>;

/// An entry that was not transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedEntry {
    /// The path relative to the top; any bytes.
    pub path: Vec<u8>,
    /// The reason, safe to print.
    pub reason: String,
}

/// The number of skipped entries, and the first of them.
#[derive(Debug, Default)]
pub(super) struct SkippedEntries {
    pub(super) count: u64,
    pub(super) first: Vec<SkippedEntry>,
}

/// How many skipped entries are kept; the others are only counted.
const MAX_DESCRIBED: usize = 100;

impl SkippedEntries {
    pub(super) fn add(&mut self, path: &[u8], reason: String) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            self.first.push(SkippedEntry {
                path: path.to_vec(),
                reason,
            });
        }
    }
}
