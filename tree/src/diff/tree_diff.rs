use std::{
    fmt,
    io::{self, Write},
};

use super::file_diff::FileDiff;

/// All changes between two trees.
///
/// Printed, it is one patch that `git apply` and `patch -p1` accept, with bytes
/// that are not UTF-8 replaced; [`write_patch`](Self::write_patch) keeps them. It
/// contains bytes from the guest: for a terminal, print it through
/// [`printable`](crate::printable()).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    files: Vec<FileDiff>,
}

impl Diff {
    /// Returns the changes, sorted by path.
    pub fn files(&self) -> &[FileDiff] {
        &self.files
    }

    /// Returns whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes all changes as one patch in git's format. Applying it to the old
    /// tree makes the new one, except where [`FileDiff::detail`] is not
    /// [`Full`](super::PatchDetail::Full).
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

impl fmt::Display for Diff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.iter().try_for_each(|file| file.fmt(formatter))
    }
}

impl FromIterator<FileDiff> for Diff {
    fn from_iter<I: IntoIterator<Item = FileDiff>>(files: I) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_by(|first, second| first.change().path.cmp(&second.change().path));
        Self { files }
    }
}
