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
//! In the guest a worker process does the work, so a slow disk holds up nobody
//! else. Work that is under way when the link to the guest breaks is given up,
//! and says so: [`Error::Transport`](crate::Error::Transport).

mod change;
mod entry;
mod failure;
mod filter;
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
mod writer;

pub use change::{FileEvent, FileEventKind, Watch, Watcher};
pub use entry::{Entry, EntryKind, Usage};
pub use failure::{FileFailure, FileFailureKind};
pub use handle::Files;
pub use manifest::ManifestOptions;
pub use owner::FileOwner;
pub use patching::{PatchOptions, PatchedFile};
pub use pull::Pull;
pub use push::{Push, Pushed};
pub use reader::{FileReader, ReadOptions};
pub use walk::{Entries, WalkOptions, WalkProblem};
pub use writer::{FileWriter, WriteOptions};

#[cfg(feature = "disk")]
pub(crate) use entry::system_time;
#[cfg(feature = "disk")]
pub(crate) use filter::FilterLines;
pub(crate) use job::Job;
