//! Confinement of VMMs: what is left to a guest that has taken over its VMM.
//!
//! ```text
//!  namespaces    an empty root with the VMM, its libraries, its firmware and the guest's
//!                kernel, read-only; no network; no other process
//!  user          one that nothing else has, if the caller is root
//!  Landlock      the same files again, and nothing else may be executed
//!  seccomp       no new processes or namespaces, no mounts, no debugging, no network
//!  capabilities  none
//!  limits        open files, threads, address space, core dumps, locked memory
//!  cgroup        memory and threads, where one is delegated
//! ```
//!
//! Each layer is used if the system has it, without root too. [`examine`] returns which it has,
//! and [`Health::confinement`](crate::Health::confinement) which the VMM of a VM has.
//!
//! Disk, link and console of a VM are open files that its VMM inherits, so it needs none of the
//! folders that these are in. A VMM that is a script (`VMCELL_QEMU` may name one) is not
//! confined, because nobody knows what it needs.

mod cgroup;
mod launcher;
mod libraries;
mod program;

use std::{fmt, str::FromStr};

pub(crate) use cgroup::cpu_max;
pub use program::VmmProgram;
pub use vmcell_launcher::{Layer, LayerStatus};

use crate::error::Error;

/// Whether the VMM of a VM is confined: see [`VmBuilder::confinement`].
///
/// [`VmBuilder::confinement`]: crate::VmBuilder::confinement
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Confinement {
    /// It is not started unless the host's files, processes and network are out of its reach:
    /// by namespaces, or by Landlock of Linux 6.12 or later.
    Required,
    /// It is confined as well as the system allows.
    #[default]
    BestEffort,
    /// It runs as any program of this user, in the sandbox that it has itself.
    Off,
}

impl Confinement {
    /// Returns a stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Confinement {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Required, Self::BestEffort, Self::Off]
            .into_iter()
            .find(|confinement| confinement.name() == name)
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "{name:?} is no confinement: choose required, best-effort or off"
                ))
            })
    }
}

/// Returns how a VMM would be confined on this system. It sets up the layers in a process that
/// exits then, which takes some milliseconds and leaves nothing behind. Blocks meanwhile.
///
/// ```
/// for status in vmcell::confinement::examine()? {
///     println!("{}: {} ({})", status.layer, status.is_active, status.detail);
/// }
/// # Ok::<(), vmcell::Error>(())
/// ```
///
/// # Errors
/// [`Error::Confinement`] if none of it can be set up, [`Error::Host`] if a system call fails.
pub fn examine() -> Result<Vec<LayerStatus>, Error> {
    program::examine()
}
