//! What the host tells an agent that is to live in namespaces of the host's
//! kernel, where there is no VM.
//!
//! The agent's program is started with a few descriptors that it inherits: see
//! the constants.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::WireError;

/// The descriptor of the agent's own program.
pub const PROGRAM: u32 = 3;
/// The descriptor of a file with [`Namespaces`] in it.
pub const DESCRIPTION: u32 = 4;
/// The descriptor of the link, a socket.
pub const LINK: u32 = 5;
/// The descriptor of the directory of a cgroup that is the agent's, if
/// [`Namespaces::has_cgroup`].
pub const CGROUP: u32 = 6;

/// Everything that a life in namespaces depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespaces<'a> {
    /// Names this boot; the agent repeats it in its hello.
    pub boot_id: [u8; 16],
    /// What the agent recognises a reset of its link by: see
    /// [`reset`](crate::reset).
    pub reset_key: [u8; 16],
    /// The host name.
    pub hostname: &'a str,
    /// The path of the host's directory with the files that are to be seen. It
    /// is not written.
    pub directory: &'a [u8],
    /// How much may be written, in MiB. It is kept in memory.
    pub writable_mib: u32,
    /// Who the users in the namespaces are on the host.
    pub ids: Ids,
    /// Whether there is a cgroup.
    pub has_cgroup: bool,
}

/// Who the users and groups of a user namespace are outside of it:
/// user_namespaces(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ids {
    /// There is root, who is this user and group, and nobody else.
    Single {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// The first is root, and so on. The files of the directory belong to the
    /// users and groups whose numbers they have.
    Range {
        /// The user and group that root is.
        first: u32,
        /// How many there are.
        count: u32,
    },
}

impl<'a> Namespaces<'a> {
    /// Reads it from a file.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if the bytes are anything else.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        crate::decoder::message(bytes)
    }

    /// Writes it for a file.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if memory does not suffice.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_allocvec(self).map_err(|_| WireError::TooLarge)
    }
}
