//! Parameters for an agent that runs in namespaces of the host's kernel instead
//! of in a VM.
//!
//! The agent inherits a few file descriptors: see the constants.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::WireError;

/// The descriptor of the agent's own program.
pub const PROGRAM_FD: u32 = 3;
/// The descriptor of a file with [`Namespaces`] in it.
pub const CONFIG_FD: u32 = 4;
/// The descriptor of the link, a socket.
pub const LINK_FD: u32 = 5;
/// The descriptor of the agent's cgroup directory, if
/// [`Namespaces::has_cgroup`].
pub const CGROUP_FD: u32 = 6;

/// The parameters of an agent in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespaces<'a> {
    /// Identifies this boot; the agent repeats it in its hello.
    pub boot_id: [u8; 16],
    /// The key by which the agent recognises a reset of its link: see
    /// [`reset`](crate::reset).
    pub reset_key: [u8; 16],
    /// The host name.
    pub hostname: &'a str,
    /// The path of the host's directory with the root file system. It is not
    /// modified.
    pub directory: &'a [u8],
    /// The size of the writable layer, in MiB. It is in memory.
    pub writable_mib: u32,
    /// The mapping of users and groups to those of the host.
    pub ids: IdMapping,
    /// Whether there is a cgroup.
    pub has_cgroup: bool,
}

/// The id mapping of the user namespace: user_namespaces(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdMapping {
    /// Only root is mapped, to this user and group.
    Single {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// Users and groups from 0 are mapped to a range of the host. The files of
    /// the directory appear with the ids that they have on the host.
    Range {
        /// The id of the host to which 0 is mapped.
        first: u32,
        /// The number of ids.
        count: u32,
    },
}

impl<'a> Namespaces<'a> {
    /// Decodes the contents of the file.
    ///
    /// # Errors
    /// [`WireError::Malformed`]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        crate::message::message(bytes)
    }

    /// Encodes the contents of the file.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if memory does not suffice.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_allocvec(self).map_err(|_| WireError::TooLarge)
    }
}
