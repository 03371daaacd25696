use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// What is known about a template in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateInfo {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// The image that its VM has booted from.
    pub image: Option<PathBuf>,
    /// The number of virtual processors.
    pub vcpus: u32,
    /// The size of the memory in MiB.
    pub memory_mib: u32,
    /// How many bytes it takes on the disk.
    pub bytes: u64,
    /// When it was made.
    pub created: SystemTime,
    /// When it was used last.
    pub used: SystemTime,
}

impl TemplateInfo {
    /// Returns whether nobody can use it any more, or nobody has for this long.
    pub(super) fn is_unused_for(&self, time: Duration) -> bool {
        let is_gone = self.image.as_ref().is_some_and(|image| !image.exists());
        // A time in the future is a clock that was set back.
        is_gone || self.used.elapsed().is_ok_and(|elapsed| elapsed >= time)
    }
}
