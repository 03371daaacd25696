use std::path::PathBuf;

use super::WorkspaceState;

/// Why something cannot be done with a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// There is no such workspace.
    #[error("there is no workspace {id:?}")]
    NotFound {
        /// The id or name that was looked for.
        id: String,
    },
    /// There is a workspace with this id.
    #[error("there is a workspace with the id {id:?}: choose another one, or delete it first")]
    IdTaken {
        /// The id.
        id: String,
    },
    /// Another workspace of this user has the name.
    #[error("the workspace {id} has the name {name:?}: choose another one")]
    NameTaken {
        /// The name.
        name: String,
        /// The id of the workspace that has it.
        id: String,
    },
    /// It must be in another state.
    #[error("the workspace {id} is {state}, but must be {needed}")]
    State {
        /// The id.
        id: String,
        /// Its state.
        state: WorkspaceState,
        /// The state that it must be in, and how to get there.
        needed: &'static str,
    },
    /// There is no snapshot with this name.
    #[error("the workspace {id} has no snapshot {name:?}")]
    NoSnapshot {
        /// The id.
        id: String,
        /// The name.
        name: String,
    },
    /// It keeps no such secret.
    #[error("the workspace {id} keeps no secret {name:?}")]
    NoSecret {
        /// The id.
        id: String,
        /// The name of the secret.
        name: String,
    },
    /// There is a snapshot with this name.
    #[error("the workspace {id} has a snapshot {name:?}: delete it, or choose another name")]
    SnapshotTaken {
        /// The id.
        id: String,
        /// The name.
        name: String,
    },
    /// The program that was to run it could not.
    #[error("{reason}")]
    Keeper {
        /// The id.
        id: String,
        /// Why it could not.
        reason: String,
    },
    /// Its disk has as many layers as it may have, so that there is no room for another
    /// snapshot.
    #[error("the disk of the workspace {id} has {limit} layers, which is the limit: {remedy}")]
    TooManyLayers {
        /// The id.
        id: String,
        /// The maximum number of layers.
        limit: usize,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The disk that the workspaces are on has no room left.
    #[error("the disk of {} is full: free some space and try again ({reason})", path.display())]
    DiskFull {
        /// The folder of the workspace.
        path: PathBuf,
        /// What failed.
        reason: String,
    },
    /// A file of the workspace cannot be used.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The workspace was written by a newer version of vmcell.
    #[error(
        "{}: was written by a newer version of vmcell (format {version}; this one reads up to \
         {supported}): use that version",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        version: u64,
        /// The newest version that is read.
        supported: u64,
    },
}

impl WorkspaceError {
    /// Returns a name of the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "no-such-workspace",
            Self::IdTaken { .. } => "workspace-id-taken",
            Self::NameTaken { .. } => "workspace-name-taken",
            Self::State { .. } => "workspace-state",
            Self::NoSnapshot { .. } => "no-such-snapshot",
            Self::NoSecret { .. } => "no-such-secret",
            Self::SnapshotTaken { .. } => "snapshot-name-taken",
            Self::Keeper { .. } => "workspace-keeper",
            Self::TooManyLayers { .. } => "too-many-layers",
            Self::DiskFull { .. } => "disk-full",
            Self::Damaged { .. } => "workspace-damaged",
            Self::Newer { .. } => "workspace-newer",
        }
    }
}
