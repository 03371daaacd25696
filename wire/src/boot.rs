//! What the host tells the agent before any link exists.
//!
//! The host library puts it into the initramfs beside the agent, as the file
//! [`BOOT_FILE`]:
//!
//! ```text
//!  0       4            6          8        12
//!  | magic | generation | oldest   | length | a Boot, and what is newer | ...
//!          | written    | to read  |
//! ```
//!
//! All numbers are little-endian. Host and agent may be of different versions.
//! What a newer host adds stands behind the [`Boot`], within the length, and an
//! older agent does not look at it. What an agent must understand raises the
//! oldest generation that may read the file, and an older agent says so and
//! gives up.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::error::WireError;

/// The path of the boot file in the initramfs.
pub const BOOT_FILE: &str = "/vmcell-boot";

/// What every boot file begins with.
const MAGIC: [u8; 4] = *b"vmcb";

/// The generation of boot files that this crate writes, and the newest that it
/// reads.
pub const BOOT_GENERATION: u16 = 1;

/// The oldest generation of agents that can read what this crate writes.
const OLDEST: u16 = 1;

/// The longest boot file that an agent reads, in bytes.
pub const MAX_BOOT_FILE: usize = 64 * 1024;

/// Stands in the program of every agent that reads boot files with a version.
/// An agent without it is older, and says no more than that the file is
/// malformed.
pub const AGENT_MARK: &str = "vmcell boot file";

/// Everything a boot depends on. It is frozen: what is added comes behind it in
/// the file.
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
    /// Writes a boot file.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if it would be too long.
    pub fn to_file(&self) -> Result<Vec<u8>, WireError> {
        let boot = self.encode()?;
        let length = u32::try_from(boot.len()).map_err(|_| WireError::TooLarge)?;
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&BOOT_GENERATION.to_le_bytes());
        file.extend_from_slice(&OLDEST.to_le_bytes());
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&boot);
        match file.len() <= MAX_BOOT_FILE {
            true => Ok(file),
            false => Err(WireError::TooLarge),
        }
    }

    /// Reads a boot file, and passes over what is newer than this crate.
    ///
    /// # Errors
    /// [`BootFileError`]
    pub fn from_file(file: &'a [u8]) -> Result<Self, BootFileError> {
        let rest = file
            .strip_prefix(&MAGIC)
            .ok_or(BootFileError::WithoutVersion)?;
        // Who wrote it does not matter, only who can read it.
        let (_generation, rest) = rest
            .split_first_chunk::<2>()
            .ok_or(BootFileError::Damaged)?;
        let (oldest, rest) = rest.split_first_chunk().ok_or(BootFileError::Damaged)?;
        let needs = u16::from_le_bytes(*oldest);
        if needs > BOOT_GENERATION {
            return Err(BootFileError::TooNew { needs });
        }
        let (length, rest) = rest.split_first_chunk().ok_or(BootFileError::Damaged)?;
        let length = usize::try_from(u32::from_le_bytes(*length));
        let boot = length.ok().and_then(|length| rest.get(..length));
        let boot = boot.ok_or(BootFileError::Damaged)?;
        let (boot, _newer) = postcard::take_from_bytes(boot).map_err(|_| BootFileError::Damaged)?;
        Ok(boot)
    }

    /// Reads what a boot file is about, without what stands around it.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if the bytes are anything else.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        crate::decoder::message(bytes)
    }

    /// Writes what a boot file is about, without what stands around it.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if memory does not suffice.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_allocvec(self).map_err(|_| WireError::TooLarge)
    }
}

/// Why a boot file is of no use to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootFileError {
    /// It was written before boot files had versions, or is something else.
    WithoutVersion,
    /// Only newer agents can read it.
    TooNew {
        /// The oldest generation that can.
        needs: u16,
    },
    /// It is too short, or has senseless contents.
    Damaged,
}

impl fmt::Display for BootFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithoutVersion => write!(
                f,
                "it is no {AGENT_MARK} with a version: the host library is older than this \
                 agent, use the agent that was built with it"
            ),
            Self::TooNew { needs } => write!(
                f,
                "the {AGENT_MARK} is for agents that read generation {needs}, and this one \
                 reads up to {BOOT_GENERATION}: use the agent that was built with the host \
                 library"
            ),
            Self::Damaged => write!(f, "the {AGENT_MARK} is damaged"),
        }
    }
}

impl core::error::Error for BootFileError {}
