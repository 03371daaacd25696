use core::fmt;

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::{hello::Hello, request::Request};

/// The identity that a VM takes after it was restored from a snapshot, whose own
/// it would otherwise share with every other copy: see [`Request::Renew`].
///
/// The boot id and the reset key are those of the hellos and resets that follow.
/// The current session goes on.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew<'a> {
    /// The new boot id of the agent's [`Hello`], from which the guest's
    /// `/proc/sys/kernel/random/boot_id` is derived, too.
    pub boot_id: [u8; 16],
    /// The new key by which the agent recognises a reset of its serial ports: see
    /// [`reset`](crate::reset).
    pub reset_key: [u8; 16],
    /// Random bytes that reseed the guest kernel's random number generator.
    pub seed: [u8; 32],
    /// The host's wall clock, in nanoseconds since 1970.
    pub wall_time_ns: u64,
    /// The guest's new host name.
    #[serde(borrow)]
    pub hostname: &'a str,
}

/// Omits the key and the seed, which are secrets.
impl fmt::Debug for Renew<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renew")
            .field("boot_id", &self.boot_id)
            .field("wall_time_ns", &self.wall_time_ns)
            .field("hostname", &self.hostname)
            .finish_non_exhaustive()
    }
}
