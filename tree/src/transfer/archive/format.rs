use std::path::Path;

/// A sort of archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// `.tar`
    Tar,
    /// `.tar.gz` or `.tgz`
    TarGz,
    /// `.tar.zst`
    TarZst,
}

impl ArchiveFormat {
    /// The sort that the name of a file tells, if it does.
    ///
    /// ```
    /// use vmcell_tree::transfer::ArchiveFormat;
    ///
    /// assert_eq!(ArchiveFormat::of_name("a.tgz"), Some(ArchiveFormat::TarGz));
    /// assert_eq!(ArchiveFormat::of_name("a.zip"), None);
    /// ```
    pub fn of_name(path: impl AsRef<Path>) -> Option<Self> {
        let name = path.as_ref().file_name()?.to_str()?.to_ascii_lowercase();
        [
            (".tar", Self::Tar),
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar.zst", Self::TarZst),
        ]
        .into_iter()
        .find_map(|(ending, format)| name.ends_with(ending).then_some(format))
    }
}
