use super::{Change, Diff, DiffOptions, FileDiff};

/// How many bytes the patches of a diff may have.
#[derive(Clone, Copy, Debug)]
pub struct DiffLimits {
    /// Beyond this sum, patches only name the file
    /// ([`NameOnly`](super::PatchDetail::NameOnly)).
    pub full_patch_bytes: usize,
    /// Beyond this sum, the diff fails with [`DiffTooLarge`].
    pub total_bytes: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            full_patch_bytes: 64 << 20,
            total_bytes: 128 << 20,
        }
    }
}

/// Collects the differences of two trees, within limits, because a guest
/// decides how many there are and how large they get. A text with thousands of
/// hard links, for example, takes hardly any disk space, but its lines would be
/// in the patch once for each of them.
pub struct DiffCollector {
    files: Vec<FileDiff>,
    options: DiffOptions,
    limits: DiffLimits,
    /// The size of all patches so far.
    used_bytes: usize,
}

/// The patches exceed [`DiffLimits::total_bytes`], although they only name
/// files.
#[derive(Debug, PartialEq, Eq)]
pub struct DiffTooLarge;

impl DiffCollector {
    /// Creates an empty collector.
    pub fn new(options: DiffOptions, limits: DiffLimits) -> Self {
        Self {
            files: Vec::new(),
            options,
            limits,
            used_bytes: 0,
        }
    }

    /// Returns whether a patch can still contain a text of this size. If not,
    /// the caller need not read the text.
    pub fn has_room(&self, bytes: u64) -> bool {
        bytes < self.limits.full_patch_bytes.saturating_sub(self.used_bytes) as u64
    }

    /// Adds a change. `old` and `new` are as in [`FileDiff::new`].
    ///
    /// # Errors
    /// If the patches exceed [`DiffLimits::total_bytes`].
    pub fn add(
        &mut self,
        change: Change,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<(), DiffTooLarge> {
        let mut file = FileDiff::new(change, old, new, self.options);
        let mut sum = self.used_bytes.saturating_add(file.patch().len());
        if sum > self.limits.full_patch_bytes {
            file = file.without_texts(self.options);
            sum = self.used_bytes.saturating_add(file.patch().len());
        }
        if sum > self.limits.total_bytes {
            return Err(DiffTooLarge);
        }
        self.used_bytes = sum;
        self.files.push(file);
        Ok(())
    }

    /// Returns the collected differences.
    pub fn finish(self) -> Diff {
        self.files.into_iter().collect()
    }
}
