use super::{
    DiskError,
    budget::Budget,
    ext4::{self, Damage, DamageKind, DirectoryEntry, Ext4, Inode, Structure},
};

/// Approximate memory of an entry without its name.
const ENTRY_MEMORY: usize = 64;

/// The sorted names of a directory, and the problems found in it.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<DirectoryEntry>,
    pub(super) problems: Vec<ext4::Error>,
    /// Memory reserved in the budget. The owner releases it when it drops the
    /// listing.
    pub(super) memory: usize,
}

impl Listing {
    /// Reads a directory. Each name counts as an entry.
    ///
    /// # Errors
    /// [`DiskError::Limit`], which ends the whole operation.
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
            let size = ENTRY_MEMORY + item.as_ref().map_or(0, |entry| entry.name.len());
            budget.count_entry(path)?;
            budget.reserve(size, path)?;
            listing.memory += size;
            match item {
                Ok(entry) => listing.entries.push(entry),
                Err(error) => listing.problems.push(error),
            }
        }
        listing
            .entries
            .sort_by(|first, second| first.name.cmp(&second.name));
        listing.drop_duplicates(directory);
        Ok(listing)
    }

    /// Removes duplicate names and reports them as damage: a lookup could not
    /// tell which one is meant.
    fn drop_duplicates(&mut self, directory: &Inode) {
        let problems = &mut self.problems;
        self.entries.dedup_by(|second, first| {
            let is_duplicate = second.name == first.name;
            if is_duplicate {
                problems.push(ext4::Error::Damaged(Damage {
                    structure: Structure::Directory,
                    inode: Some(directory.number),
                    block: None,
                    problem: DamageKind::Name,
                }));
            }
            is_duplicate
        });
    }
}
