//! The guest's part in snapshots of its memory.
//!
//! ```text
//!  host      Freeze           saves the memory               Thaw
//!  VM     ──────────> frozen ──────────────────────> frozen ──────> goes on
//!                                   │
//!  copy                             └─> restored, frozen ──Renew──> goes on
//! ```
//!
//! A copy has the random numbers, the clock, the host name, the boot id and the
//! reset key of the VM that it was made from. `Renew` replaces them before any of
//! its processes runs. Only the program that runs the agent can do so for the
//! machine: see [`IdentityControl`].
//!
//! Processes of the agent itself are not frozen: its workers, those that probe
//! services, and the one that writes the disk back. They keep none of these.

mod requests;

use core::fmt;

use rustix::io::Errno;

/// What the program that runs the agent does for a machine that was restored from
/// a snapshot.
///
/// An agent that has one, and [cgroups](crate::AgentBuilder::cgroups), accepts the
/// requests for snapshots.
pub trait IdentityControl {
    /// Does in advance what takes long in [`renew`](Self::renew): it is called before the
    /// processes are frozen, and every copy of the machine has it done.
    fn prepare(&mut self) {}

    /// Gives the machine a new identity. All processes that the agent has started
    /// are frozen, so it must not wait for any of them; they run when it has
    /// returned `Ok`.
    ///
    /// # Errors
    /// The machine has no new identity, or a part of it. The host is told so, and
    /// the processes stay frozen.
    fn renew(&mut self, identity: &NewIdentity<'_>) -> Result<(), Errno>;
}

/// The identity that a machine takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NewIdentity<'a> {
    /// Random bytes for the kernel's random number generator.
    pub seed: [u8; 32],
    /// The wall clock, in nanoseconds since 1970.
    pub wall_time_ns: u64,
    /// The host name.
    pub hostname: &'a str,
    /// The boot id. The agent uses it in its hello, too.
    pub boot_id: [u8; 16],
}

/// Omits the seed, which is a secret.
impl fmt::Debug for NewIdentity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewIdentity")
            .field("wall_time_ns", &self.wall_time_ns)
            .field("hostname", &self.hostname)
            .field("boot_id", &self.boot_id)
            .finish_non_exhaustive()
    }
}
