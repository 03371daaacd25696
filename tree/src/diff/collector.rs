use super::{Change, Diff, DiffOptions, FileDiff};

/// How many bytes the patches of a diff may have.
#[derive(Clone, Copy, Debug)]
pub struct DiffLimits {
    /// Those that show lines of files. What goes beyond is only named.
    pub shown: usize,
    /// All of them, with those that only name.
    pub patches: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            shown: 64 << 20,
            patches: 128 << 20,
        }
    }
}

/// Collects the differences of two trees, within limits: a guest decides how
/// many there are and what they show. A text that has thousands of names, say,
/// takes hardly any room there, and would be shown once for each of them.
pub struct DiffCollector {
    files: Vec<FileDiff>,
    options: DiffOptions,
    limits: DiffLimits,
    /// How many bytes of patches there are.
    patches: usize,
}

/// The patches have more bytes than they may, although they only name.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl DiffCollector {
    /// Starts an empty collection.
    pub fn new(options: DiffOptions, limits: DiffLimits) -> Self {
        Self {
            files: Vec::new(),
            options,
            limits,
            patches: 0,
        }
    }

    /// Whether so many bytes of a text could be shown. If not, the text need
    /// not be read.
    pub fn has_room(&self, bytes: u64) -> bool {
        bytes < self.limits.shown.saturating_sub(self.patches) as u64
    }

    /// Adds a change. The contents are those that [`FileDiff::new`] takes.
    pub fn add(
        &mut self,
        change: Change,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<(), TooLarge> {
        let mut file = FileDiff::new(change, old, new, self.options);
        let mut sum = self.patches.saturating_add(file.patch().len());
        if sum > self.limits.shown {
            file = file.without_texts(self.options);
            sum = self.patches.saturating_add(file.patch().len());
        }
        if sum > self.limits.patches {
            return Err(TooLarge);
        }
        self.patches = sum;
        self.files.push(file);
        Ok(())
    }

    /// Returns what was collected.
    pub fn finish(self) -> Diff {
        self.files.into_iter().collect()
    }
}
