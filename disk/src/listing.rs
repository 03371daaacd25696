use super::{
    DiskError,
    budget::Budget,
    ext4::{self, Damage, DamageKind, DirectoryEntry, Ext4, Inode, Structure},
};

/// What an entry takes in memory beside its name, roughly.
const ENTRY: usize = 64;

/// The names of a directory, in order, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<DirectoryEntry>,
    pub(super) problems: Vec<ext4::Error>,
    /// How much of the budget of memory it takes. Whoever drops it gives that
    /// back.
    pub(super) kept: usize,
}

impl Listing {
    /// Reads a directory, each name of which counts as an entry.
    ///
    /// # Errors
    /// What ends the whole operation: [`DiskError::Limit`].
    pub(super) fn read(
        ext4: &Ext4,
        directory: &Inode,
        path: &[u8],
        budget: &mut Budget,
    ) -> Result<Self, DiskError> {
        let mut listing = Self::default();
        let items = match ext4.directory(directory) {
            Ok(items) => items,
            Err(error) => {
                listing.problems.push(error);
                return Ok(listing);
            }
        };
        for item in items {
            let size = ENTRY + item.as_ref().map_or(0, |entry| entry.name.len());
            budget.entry(path)?;
            budget.keep(size, path)?;
            listing.kept += size;
            match item {
                Ok(entry) => listing.entries.push(entry),
                Err(error) => listing.problems.push(error),
            }
        }
        listing
            .entries
            .sort_by(|first, second| first.name.cmp(&second.name));
        listing.drop_doubles(directory);
        Ok(listing)
    }

    /// A name can be in a directory once. Of a second one nobody could tell
    /// which is meant.
    fn drop_doubles(&mut self, directory: &Inode) {
        let problems = &mut self.problems;
        self.entries.dedup_by(|second, first| {
            let is_double = second.name == first.name;
            if is_double {
                problems.push(ext4::Error::Damaged(Damage {
                    structure: Structure::Directory,
                    inode: Some(directory.number),
                    block: None,
                    problem: DamageKind::Name,
                }));
            }
            is_double
        });
    }
}
