use std::{fmt, process::ExitStatus};

/// How a VM ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VmEnd {
    /// What ended it.
    pub reason: End,
    /// The exit status of the VMM, for example of QEMU. `None` if it is not
    /// known.
    pub status: Option<ExitStatus>,
}

/// What ended a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum End {
    /// It was stopped: its processes were ended, and its agent reported that the
    /// disk is clean.
    Stopped,
    /// The caller killed it.
    Killed,
    /// It was asked to stop, did not do so in time, and was killed.
    StopTimedOut,
    /// Its guest or its VMM ended by itself, possibly while it was being stopped.
    Died,
    /// Its agent violated the protocol, so it was killed.
    #[cfg_attr(feature = "serde", serde(rename = "untrustworthy"))]
    ProtocolViolation,
    /// It used up its [processor time](crate::Quotas::cpu_time()), so it was killed.
    CpuTimeUsed,
    /// Another program owned it and is gone without reporting how the VM ended.
    Unknown,
    /// It was stopped, but its agent could not make the disk clean.
    NotClean,
    /// It was stopped, by an agent of an older version that does not report
    /// whether the disk is clean.
    StoppedUnproven,
}

/// The effect of a VM's end on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndKind {
    /// Everything that the guest wrote is on the disk, and its file system is
    /// clean.
    Clean,
    /// The VM was ended from outside before that. As after a power cut, the last
    /// writes are missing.
    Cut,
    /// The guest or the VMM ended by itself before that. As after a power cut,
    /// the last writes are missing.
    Crashed,
    /// It is not known.
    Unknown,
}

impl VmEnd {
    pub(crate) fn unknown() -> Self {
        Self {
            reason: End::Unknown,
            status: None,
        }
    }

    /// Returns the effect of the end on the disk.
    pub fn kind(self) -> EndKind {
        self.reason.kind()
    }
}

impl End {
    /// Returns the effect of the end on the disk.
    pub fn kind(self) -> EndKind {
        match self {
            Self::Stopped => EndKind::Clean,
            Self::Killed
            | Self::StopTimedOut
            | Self::ProtocolViolation
            | Self::CpuTimeUsed
            | Self::NotClean => EndKind::Cut,
            Self::Died => EndKind::Crashed,
            Self::Unknown | Self::StoppedUnproven => EndKind::Unknown,
        }
    }

    /// Returns a name that never changes, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Killed => "killed",
            Self::StopTimedOut => "stop-timed-out",
            Self::Died => "died",
            Self::ProtocolViolation => "untrustworthy",
            Self::CpuTimeUsed => "cpu-time-used",
            Self::Unknown => "unknown",
            Self::NotClean => "not-clean",
            Self::StoppedUnproven => "stopped-unproven",
        }
    }
}

impl EndKind {
    /// Returns a name that never changes, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Cut => "cut",
            Self::Crashed => "crashed",
            Self::Unknown => "unknown",
        }
    }
}

/// Prints the reason, and the exit status of a VMM that ended by itself.
impl fmt::Display for VmEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason, self.status) {
            (End::Died, Some(status)) => write!(f, "{} ({status})", self.reason),
            _ => write!(f, "{}", self.reason),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "it was stopped",
            Self::Killed => "it was killed",
            Self::StopTimedOut => "it did not stop in time and was killed",
            Self::Died => "it died",
            Self::Unknown => "it ended, or the program that owned it did",
            Self::ProtocolViolation => "its agent broke the protocol, so it was killed",
            Self::CpuTimeUsed => {
                "it used up its processor time and was killed: allow more with its quota `cpu_time`"
            }
            Self::NotClean => "it was stopped, but its disk could not be made clean",
            Self::StoppedUnproven => {
                "it was stopped, but its agent does not report whether the disk is clean"
            }
        })
    }
}

impl fmt::Display for EndKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
