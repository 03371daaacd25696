use std::path::PathBuf;

/// Something to be copied.
#[derive(Clone, Debug)]
pub(crate) struct CopyEntry {
    /// Where it goes, below the destination.
    pub(crate) name: PathBuf,
    pub(crate) kind: CopyKind,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// Seconds since 1970.
    pub(crate) modified: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum CopyKind {
    Directory,
    Symlink(PathBuf),
    File { size: u64, content: Content },
}

/// Where the bytes of a file are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Host(PathBuf),
    Disk(PathBuf),
    Bytes(Vec<u8>),
}

impl CopyEntry {
    /// A file with these bytes.
    pub(crate) fn text(name: &str, text: String) -> Self {
        let bytes = text.into_bytes();
        Self {
            name: name.into(),
            kind: CopyKind::File {
                size: bytes.len() as u64,
                content: Content::Bytes(bytes),
            },
            mode: 0o644,
            owner: (0, 0),
            modified: 0,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.kind, CopyKind::Directory)
    }
}
