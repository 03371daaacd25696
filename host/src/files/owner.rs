use vmcell_wire::files::Owner;

/// The owner of files and directories that are created in a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOwner {
    /// The owner of the directory in which they are created, so the user who
    /// works there can use them. A replaced file keeps its owner.
    #[default]
    OfDirectory,
    /// A user of the guest: `USER` or `USER:GROUP`, names or numbers.
    User(String),
    /// The user and group IDs that they have at the source. Only for trees;
    /// otherwise the owner is root.
    OfSource,
}

impl FileOwner {
    /// Returns [`FileOwner::User`].
    pub fn user(name: impl Into<String>) -> Self {
        Self::User(name.into())
    }

    pub(crate) fn as_wire(&self) -> Owner<'_> {
        match self {
            Self::OfDirectory => Owner::OfDirectory,
            Self::User(user) => Owner::User(user),
            Self::OfSource => Owner::OfRecord,
        }
    }
}
