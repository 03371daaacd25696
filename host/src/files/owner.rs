use vmcell_wire::files::Owner;

/// Whose the files and directories are that are made in a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOwner {
    /// They belong to whoever has the directory that they are made in, so the
    /// user who works there can use them. What is replaced stays whose it was.
    #[default]
    OfDirectory,
    /// They belong to this user of the guest: `USER` or `USER:GROUP`, names or
    /// numbers.
    User(String),
    /// They keep the numbers of the owner and the group that they have where
    /// they come from. For trees only; else the owner is root.
    OfSource,
}

impl FileOwner {
    /// A user of the guest.
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
