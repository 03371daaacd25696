use std::{path::PathBuf, time::SystemTime};

/// What is known of a VM that some program of this user runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmInfo {
    /// Its id.
    pub id: String,
    /// The program that owns it.
    pub owner_pid: u32,
    /// The image that it was booted from.
    pub image: PathBuf,
    /// How many virtual processors it has.
    pub vcpus: u32,
    /// How much memory it has, in MiB.
    pub memory_mib: u32,
    /// When its agent first answered.
    pub started: SystemTime,
    /// Whether what it writes stays when it has ended.
    pub keeps_disk: bool,
}
