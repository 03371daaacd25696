//! What is said between the host library and `vmcell-launcher`, the program that starts a
//! VMM.
//!
//! ```text
//!  the caller's program
//!    └── vmcell-launcher                       Plan ──>   <── Message
//!          joins a cgroup, enters namespaces
//!    └── PID 1 of these                        the caller's child too: CLONE_PARENT
//!          an empty root, another user, no capabilities, limits,
//!          Landlock, a seccomp filter
//!          execve: the VMM
//! ```
//!
//! It is a program of its own because all of this happens after a fork, where a program with
//! threads may neither allocate memory nor take a lock.
//!
//! The library `vmcell` embeds the program and runs it; nobody else should need this crate.

mod layer;
mod message;
mod plan;

pub use layer::{Layer, LayerStatus};
pub use message::{Failure, Message, decode_messages};
pub use plan::{Limits, OwnUser, Plan};

/// The folder with the source of this package, from which `vmcell` builds the program.
#[doc(hidden)]
pub const SOURCE: &str = env!("CARGO_MANIFEST_DIR");
