use std::io::{self, Write};

use super::file_diff::FileDiff;

/// What has changed between two trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    files: Vec<FileDiff>,
}

impl Diff {
    /// The differences, by path.
    pub fn files(&self) -> &[FileDiff] {
        &self.files
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes a patch as git does. Applied to the old tree it gives the new one,
    /// but for what [`Shown`](super::Shown) tells of.
    ///
    /// # Errors
    ///
    /// If writing fails.
    pub fn write_patch(&self, mut out: impl Write) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|file| out.write_all(file.patch()))
    }
}

impl FromIterator<FileDiff> for Diff {
    fn from_iter<I: IntoIterator<Item = FileDiff>>(files: I) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_by(|first, second| first.change().path.cmp(&second.change().path));
        Self { files }
    }
}
