use std::path::PathBuf;

use super::format::Format;

/// Options for opening an image.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(super) format: Option<Format>,
    pub(super) allowed: Vec<PathBuf>,
    pub(super) allow_in_use: bool,
}

impl OpenOptions {
    /// Returns the defaults: the format is detected, backing files must be in
    /// or below the image's own directory, and an image in use is rejected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the format of the image instead of detecting it from the first
    /// bytes. Set it for every raw disk that a guest has written.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Allows backing files in this directory and below. The image's own
    /// directory is allowed only if this is never called.
    #[must_use]
    pub fn allow_backing(mut self, folder: impl Into<PathBuf>) -> Self {
        self.allowed.push(folder.into());
        self
    }

    /// Sets whether to open an image that another process may be writing to.
    /// The data may then be inconsistent, and the image is not locked against
    /// writers.
    #[must_use]
    pub fn allow_in_use(mut self, allow_in_use: bool) -> Self {
        self.allow_in_use = allow_in_use;
        self
    }
}
