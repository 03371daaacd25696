//! What the host tells the agent before any link exists.
//!
//! The host library puts it into the initramfs beside the agent, as the file
//! [`BOOT_FILE`].

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::WireError;

/// The path of the boot file in the initramfs.
pub const BOOT_FILE: &str = "/vmcell-boot";

/// Everything a boot depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot<'a> {
    /// Names this boot; the agent repeats it in its hello.
    pub boot_id: [u8; 16],
    /// What the agent recognises a reset of its serial ports by: see
    /// [`reset`](crate::reset).
    pub reset_key: [u8; 16],
    /// Fresh randomness for the guest's kernel.
    pub seed: [u8; 32],
    /// The host's wall clock, in nanoseconds since 1970.
    pub wall_time_ns: u64,
    /// The guest's host name.
    pub hostname: &'a str,
    /// The block device with the root file system.
    pub root_device: &'a str,
    /// Where the agent finds its host.
    pub link: BootLink,
    /// Whether the disk outlives the VM. If so, the agent writes it back every
    /// second, so that little is lost when the VM ends without notice.
    pub disk_is_kept: bool,
}

/// Where the agent finds its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BootLink {
    /// On the serial ports that the machine has.
    Ports,
    /// On vsock, which the host connects to: vsock(7).
    Vsock {
        /// Where the agent listens.
        port: u32,
        /// A port of the host, to which the agent connects once as soon as it
        /// listens. Nothing is said there.
        ready_port: u32,
    },
}

impl<'a> Boot<'a> {
    /// Reads a boot file.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if the bytes are anything but one boot file.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        crate::decoder::message(bytes)
    }

    /// Writes a boot file.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if memory does not suffice.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_allocvec(self).map_err(|_| WireError::TooLarge)
    }
}
