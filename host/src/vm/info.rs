use std::{path::PathBuf, time::SystemTime};

/// A VM that some program of this user runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmInfo {
    /// Its id.
    pub id: String,
    /// The process id of the program that owns it. `None` if the system does not
    /// tell: the program is in another pid namespace, or has so many connections
    /// to accept that it gets no more.
    pub owner_pid: Option<u32>,
    /// Whether that program answers, and what.
    pub status: VmStatus,
}

/// What the program that owns a VM answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VmStatus {
    /// It says what the VM is.
    Answering(VmDetails),
    /// It does not answer within 5 seconds: it is stopped, or the VM still boots.
    NotAnswering,
    /// It has another version of vmcell, whose answer is not understood.
    OtherVersion,
}

/// What the program that owns a VM says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmDetails {
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

impl VmInfo {
    /// What the owner says about the VM. `None` if it does not answer.
    pub fn details(&self) -> Option<&VmDetails> {
        match &self.status {
            VmStatus::Answering(details) => Some(details),
            VmStatus::NotAnswering | VmStatus::OtherVersion => None,
        }
    }
}
