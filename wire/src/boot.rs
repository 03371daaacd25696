//! The boot file: parameters that the host gives the agent before any link exists.
//!
//! The host library puts it into the initramfs next to the agent, as the file
//! [`BOOT_FILE`]:
//!
//! ```text
//!  0       4            6          8        12
//!  | magic | generation | oldest   | length | a Boot, then newer fields | ...
//!          | written    | reader   |
//! ```
//!
//! All numbers are little-endian. Host and agent may be of different versions.
//! A newer host adds fields after the [`Boot`], within the length, and an older
//! agent ignores them. An addition that agents must understand raises the oldest
//! generation that may read the file; an older agent then fails with
//! [`BootFileError::TooNew`].

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::error::WireError;

/// The path of the boot file in the initramfs.
pub const BOOT_FILE: &str = "/vmcell-boot";

/// The first bytes of every boot file.
const MAGIC: [u8; 4] = *b"vmcb";

/// The generation of boot files that this crate writes, and the newest that it
/// reads.
pub const BOOT_GENERATION: u16 = 1;

/// The oldest generation of agents that can read what this crate writes.
const OLDEST_READER: u16 = 1;

/// The longest boot file that an agent reads, in bytes.
pub const MAX_BOOT_FILE: usize = 64 * 1024;

/// A text contained in the executable of every agent that reads versioned boot
/// files. An agent without it is older, and reports only that the file is
/// malformed.
pub const BOOT_FILE_MARKER: &str = "vmcell boot file";

/// The parameters of a boot. This struct is frozen: new fields follow it in the
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot<'a> {
    /// Identifies this boot; the agent repeats it in its hello.
    pub boot_id: [u8; 16],
    /// The key by which the agent recognises a reset of its serial ports: see
    /// [`reset`](crate::reset).
    pub reset_key: [u8; 16],
    /// Random bytes that seed the guest kernel's random number generator.
    pub seed: [u8; 32],
    /// The host's wall clock, in nanoseconds since 1970.
    pub wall_time_ns: u64,
    /// The guest's host name.
    pub hostname: &'a str,
    /// The block device with the root file system.
    pub root_device: &'a str,
    /// How the agent connects to the host.
    pub link: BootLink,
    /// Whether the disk outlives the VM. If so, the agent writes back dirty data
    /// every second, so that little is lost when the VM is killed.
    pub disk_is_persistent: bool,
}

/// The fields that follow a [`Boot`] in the file, if they are not the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootOptions {
    /// Whether the agent grows the root's file system to the size of its device.
    pub grow_root: bool,
}

/// How the agent connects to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BootLink {
    /// Over the VM's virtio-serial ports.
    Serial,
    /// Over vsock; the host connects to the agent: vsock(7).
    Vsock {
        /// The port on which the agent listens.
        port: u32,
        /// A port of the host, to which the agent connects once as soon as it
        /// listens. No data is sent on that connection.
        ready_port: u32,
    },
}

impl<'a> Boot<'a> {
    /// Writes a boot file.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if it would be too long.
    pub fn to_file(&self) -> Result<Vec<u8>, WireError> {
        self.to_file_with(BootOptions::default())
    }

    /// Writes a boot file with options.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if it would be too long.
    pub fn to_file_with(&self, options: BootOptions) -> Result<Vec<u8>, WireError> {
        let mut boot = self.encode()?;
        if options != BootOptions::default() {
            let options = postcard::to_allocvec(&options).map_err(|_| WireError::TooLarge)?;
            boot.extend_from_slice(&options);
        }
        let length = u32::try_from(boot.len()).map_err(|_| WireError::TooLarge)?;
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&BOOT_GENERATION.to_le_bytes());
        file.extend_from_slice(&OLDEST_READER.to_le_bytes());
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&boot);
        match file.len() <= MAX_BOOT_FILE {
            true => Ok(file),
            false => Err(WireError::TooLarge),
        }
    }

    /// Reads a boot file. Ignores fields that are newer than this crate.
    ///
    /// # Errors
    /// [`BootFileError`]
    pub fn from_file(file: &'a [u8]) -> Result<Self, BootFileError> {
        Self::from_file_with_options(file).map(|(boot, _)| boot)
    }

    /// Reads a boot file with its options. Ignores fields that are newer than this crate.
    ///
    /// # Errors
    /// [`BootFileError`]
    pub fn from_file_with_options(file: &'a [u8]) -> Result<(Self, BootOptions), BootFileError> {
        let rest = file
            .strip_prefix(&MAGIC)
            .ok_or(BootFileError::WithoutVersion)?;
        // The generation of the writer is ignored; `oldest` decides.
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
        let (boot, newer) = postcard::take_from_bytes(boot).map_err(|_| BootFileError::Damaged)?;
        let options = postcard::take_from_bytes(newer);
        Ok((
            boot,
            options.map_or_else(|_| BootOptions::default(), |(it, _)| it),
        ))
    }

    /// Decodes the parameters alone, without the header of a boot file.
    ///
    /// # Errors
    /// [`WireError::Malformed`]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        crate::message::message(bytes)
    }

    /// Encodes the parameters alone, without the header of a boot file.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if memory does not suffice.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_allocvec(self).map_err(|_| WireError::TooLarge)
    }
}

/// Why an agent cannot use a boot file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootFileError {
    /// It was written before boot files had versions, or is not a boot file.
    WithoutVersion,
    /// Only newer agents can read it.
    TooNew {
        /// The oldest generation that can read it.
        needs: u16,
    },
    /// It is truncated or malformed.
    Damaged,
}

impl fmt::Display for BootFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithoutVersion => write!(
                f,
                "it is not a versioned {BOOT_FILE_MARKER}: the host library is older than this \
                 agent, use the agent that was built with it"
            ),
            Self::TooNew { needs } => write!(
                f,
                "the {BOOT_FILE_MARKER} is for agents that read generation {needs}, and this one \
                 reads up to {BOOT_GENERATION}: use the agent that was built with the host \
                 library"
            ),
            Self::Damaged => write!(f, "the {BOOT_FILE_MARKER} is damaged"),
        }
    }
}

impl core::error::Error for BootFileError {}
