use std::{path::PathBuf, time::SystemTime};

/// A VM that a program of this user runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmInfo {
    /// Its id.
    pub id: String,
    /// The process id of the program that owns it. `None` if it is not known: the
    /// program is in another pid namespace, or its queue of connections is full.
    pub owner_pid: Option<u32>,
    /// Whether that program answers, and its answer.
    pub status: VmStatus,
}

/// The answer of the program that owns a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VmStatus {
    /// It describes the VM.
    Answering(VmDetails),
    /// It does not answer within 5 seconds: it is suspended, or the VM is booting.
    NotAnswering,
    /// It uses another version of vmcell, whose answer is not understood.
    OtherVersion,
}

/// A VM as described by the program that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmDetails {
    /// The image that it was booted from.
    pub image: PathBuf,
    /// How many virtual processors it has.
    pub vcpus: u32,
    /// How much memory it has, in MiB.
    pub memory_mib: u32,
    /// The time when its agent first answered.
    pub started: SystemTime,
    /// Whether its disk is kept when it ends.
    pub keeps_disk: bool,
    /// Whether it is paused.
    pub is_paused: bool,
}

impl VmStatus {
    /// Returns a stable name, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answering(details) if details.is_paused => "paused",
            Self::Answering(_) => "running",
            Self::NotAnswering => "not-answering",
            Self::OtherVersion => "other-version",
        }
    }
}

impl VmInfo {
    /// Returns the owner's description of the VM. `None` if it does not answer.
    pub fn details(&self) -> Option<&VmDetails> {
        match &self.status {
            VmStatus::Answering(details) => Some(details),
            VmStatus::NotAnswering | VmStatus::OtherVersion => None,
        }
    }
}
