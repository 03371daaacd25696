//! The files of a guest: [`Files`].
//!
//! ```no_run
//! # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
//! let files = vm.files().at("/workspace");
//! files.write("notes/today.txt", "hello\n").await?;
//! for entry in files.list("notes").await? {
//!     println!("{} {}", entry.permissions(), entry.path.display());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A worker process in the guest does the work, so a slow disk does not delay
//! other requests. Work that is running when the link to the guest breaks fails
//! with [`Error::Transport`](crate::Error::Transport).

mod failure;
mod handle;
mod job;
mod manifest;
mod operations;
mod owner;
mod patching;
mod path;
mod pull;
mod push;
mod reader;
mod walk;
mod watch;
mod writer;

pub use failure::{FileFailure, FileFailureKind};
pub use handle::Files;
pub use manifest::ManifestOptions;
pub(crate) use manifest::manifest_entry;
pub use owner::FileOwner;
pub use patching::{AppliedPatch, PatchOptions, PatchedFile};
pub use pull::Pull;
pub use push::{Push, Pushed};
pub use reader::FileReader;
pub use vmcell_tree::{Entry, EntryKind, ReadOptions, Usage, WalkOptions};
pub use walk::{Entries, WalkProblem};
pub use watch::{FileEvent, FileEventKind, Watch, Watcher};
pub use writer::{FileWriter, WriteOptions};

pub(crate) use job::Job;
