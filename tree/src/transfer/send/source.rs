use std::path::PathBuf;
#[cfg(feature = "archive")]
use std::{fs::File, io::Read, path::Path};

#[cfg(feature = "archive")]
use crate::transfer::{TreeError, error::display_path_below};

/// Where a tree comes from.
pub enum Source {
    /// A directory, a file or a symbolic link of the host. A link is sent as a
    /// link.
    Path(PathBuf),
    /// A tar archive, plain or compressed with gzip or zstd, which its first
    /// bytes show.
    #[cfg(feature = "archive")]
    Archive {
        /// The reader for the bytes of the archive.
        reader: Box<dyn Read + Send>,
        /// The name in error messages.
        name: PathBuf,
    },
}

#[cfg(feature = "archive")]
impl Source {
    /// Opens an archive file of the host.
    ///
    /// # Errors
    /// [`TreeError::Read`] if it cannot be opened.
    pub fn archive_file(path: &Path) -> Result<Self, TreeError> {
        let file = File::open(path)
            .map_err(|source| TreeError::read(display_path_below(path, b""), source))?;
        Ok(Self::Archive {
            reader: Box::new(file),
            name: path.to_owned(),
        })
    }
}
