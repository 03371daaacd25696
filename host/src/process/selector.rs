use std::fmt;

use vmcell_wire::Selector;

use super::Process;

/// The id that the agent assigned to a process. It is never reused within a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Selects a process by id, pid or tag.
///
/// ```
/// use vmcell::{ProcessId, ProcessSelector};
///
/// let by_tag: ProcessSelector = "web".into();
/// let by_id: ProcessSelector = ProcessId(7).into();
/// let by_pid = ProcessSelector::Pid(312);
/// # let _ = (by_tag, by_id, by_pid);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessSelector {
    /// By its id.
    Id(ProcessId),
    /// By its pid in the guest. A running process takes precedence over one
    /// that has ended.
    Pid(u32),
    /// By its tag.
    Tag(String),
}

impl ProcessSelector {
    pub(crate) fn as_wire(&self) -> Selector<'_> {
        match self {
            Self::Id(ProcessId(id)) => Selector::Id(*id),
            Self::Pid(pid) => Selector::Pid(*pid),
            Self::Tag(tag) => Selector::Tag(tag),
        }
    }
}

impl From<ProcessId> for ProcessSelector {
    fn from(id: ProcessId) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for ProcessSelector {
    fn from(tag: &str) -> Self {
        Self::Tag(tag.to_owned())
    }
}

impl From<&Process> for ProcessSelector {
    fn from(process: &Process) -> Self {
        Self::Id(process.id())
    }
}

impl fmt::Display for ProcessSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "process {id}"),
            Self::Pid(pid) => write!(f, "process with pid {pid}"),
            Self::Tag(tag) => write!(f, "process {tag:?}"),
        }
    }
}
