use std::path::PathBuf;

use super::format::Format;

/// How an image is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(super) format: Option<Format>,
    pub(super) allowed: Vec<PathBuf>,
    pub(super) torn: bool,
}

impl OpenOptions {
    /// The format is told by the content, backing files are in the image's own
    /// folder, and an image in use is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says which format the image has, whatever its first bytes look like. Say
    /// it of every raw disk that a guest has written.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Allows backing files beneath this folder. The folder of the image is
    /// allowed only while no other is named.
    #[must_use]
    pub fn allow(mut self, folder: impl Into<PathBuf>) -> Self {
        self.allowed.push(folder.into());
        self
    }

    /// Whether to open an image that somebody may be writing. What is read from
    /// it may then be of different moments, and nobody is kept from writing it.
    #[must_use]
    pub fn torn(mut self, torn: bool) -> Self {
        self.torn = torn;
        self
    }
}
