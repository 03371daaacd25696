use std::path::Path;

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// `.tar`
    Tar,
    /// `.tar.gz` or `.tgz`
    TarGz,
    /// `.tar.zst`; needs the feature `zstd`
    TarZst,
}

impl ArchiveFormat {
    /// Detects the format by the extension of a path, ignoring case.
    ///
    /// ```
    /// use vmcell_tree::transfer::ArchiveFormat;
    ///
    /// assert_eq!(ArchiveFormat::from_path("a.tgz"), Some(ArchiveFormat::TarGz));
    /// assert_eq!(ArchiveFormat::from_path("a.zip"), None);
    /// ```
    pub fn from_path(path: impl AsRef<Path>) -> Option<Self> {
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
