use std::fmt;

/// The state of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkspaceState {
    /// Its VM runs.
    Running,
    /// It has no VM. Its disk is kept.
    Stopped,
    /// It has no VM, but the memory of one: its processes go on when it is started.
    Paused,
}

impl WorkspaceState {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
        }
    }
}

impl fmt::Display for WorkspaceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
