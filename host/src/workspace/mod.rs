//! Workspaces: VMs with a name, a disk and snapshots that outlive the program.
//!
//! ```no_run
//! # async fn example() -> Result<(), vmcell::Error> {
//! use vmcell::{Command, workspace::{NewWorkspace, Workspaces}};
//!
//! let workspaces = Workspaces::open()?;
//! let new = NewWorkspace::new("base.ext4").name("build").seed("my-project");
//! let workspace = workspaces.create(new).await?;
//! workspace.exec(Command::shell("make > log 2>&1")).await?;
//! workspace.snapshot("built").await?;
//! workspace.stop().await?;
//!
//! // Another day, in another program:
//! let workspace = workspaces.get("build").await?;
//! workspace.start().await?;
//! workspace.reset("built").await?;
//! # Ok(())
//! # }
//! ```
//!
//! A workspace is a folder below `$XDG_STATE_HOME/vmcell/workspaces` with its record, a
//! JSON file, and the layers of its disk. All programs of the same user see it; locks that
//! end with their program let one at a time change it. It runs in the program that has
//! started it, and stops with it; or in a [`Keeper`], a process of its own that goes on.
//! Other programs use it meanwhile, through [`Workspace::vm`].
//!
//! # What a crash leaves
//! A workspace is there or not, with a record of before a change or of after it. What a
//! program has left undone that died is finished or undone by the next one that uses the
//! workspace. What programs of the guest have synced is on the disk.

mod attached;
mod blank;
mod command_record;
mod commands;
mod create;
mod deadlines;
mod deletion;
mod diff;
mod error;
mod first_boot;
mod folder;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handle;
mod history;
mod id;
mod info;
mod keep;
mod keeper;
mod keeper_messages;
mod layers;
mod lock;
mod locked;
mod merge;
mod new;
mod record;
mod running;
mod secrets;
mod seed;
mod services;
mod snapshots;
mod spare_room;
mod specification;
mod state;
mod timestamp;
mod update;
mod workspaces;

pub use command_record::{CommandRecord, CommandState, RecordedOutput};
pub use deletion::{DeletedWorkspaces, FailedDeletion};
pub use error::WorkspaceError;
pub use handle::Workspace;
pub use info::{WorkspaceInfo, WorkspaceSeed, WorkspaceSnapshot};
pub use keeper::Keeper;
pub use new::NewWorkspace;
pub use seed::SeedProgress;
pub use state::WorkspaceState;
pub use update::WorkspaceUpdate;
pub use workspaces::Workspaces;

/// The name of the snapshot that every workspace has: itself as it was created.
pub const BASELINE: &str = "baseline";
