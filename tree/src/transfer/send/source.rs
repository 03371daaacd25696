use std::path::PathBuf;
#[cfg(feature = "archive")]
use std::{fs::File, io::Read, path::Path};

#[cfg(feature = "archive")]
use crate::transfer::{TreeError, error::shown_below};

/// Where a tree comes from.
pub enum Source {
    /// A directory of the host, a file, or a link, which is sent as a link.
    Path(PathBuf),
    /// A tar archive, plain or compressed with gzip or zstd: its first bytes
    /// tell which.
    #[cfg(feature = "archive")]
    Archive {
        /// Where it is read from.
        reader: Box<dyn Read + Send>,
        /// What it is called in errors.
        name: PathBuf,
    },
}

#[cfg(feature = "archive")]
impl Source {
    /// An archive that is a file of the host.
    ///
    /// # Errors
    /// [`TreeError::Read`] if it cannot be opened.
    pub fn archive_at(path: &Path) -> Result<Self, TreeError> {
        let file =
            File::open(path).map_err(|source| TreeError::read(shown_below(path, b""), source))?;
        Ok(Self::Archive {
            reader: Box::new(file),
            name: path.to_owned(),
        })
    }
}
