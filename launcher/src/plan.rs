use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// How to start a VMM, and what it may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The program. `None` to report how one would be confined, and exit.
    pub program: Option<OsString>,
    /// Its arguments, from the name of the program on.
    pub arguments: Vec<OsString>,
    /// The folder that it is started in.
    pub folder: OsString,
    /// Whether it must not be started if it is not confined well: see
    /// [`Failure`](crate::Failure).
    pub is_required: bool,
    /// Why namespaces cannot be used, if they cannot.
    pub no_namespaces: Option<String>,
    /// Files and folders that it may read.
    pub readable: Vec<OsString>,
    /// Folders that it may change.
    pub writable: Vec<OsString>,
    /// Devices that it may use.
    pub devices: Vec<OsString>,
    /// Inherited descriptors whose files it opens again, by their names in `/proc/self/fd`.
    pub reopened: Vec<i32>,
    /// Whether it may create Unix sockets.
    pub uses_sockets: bool,
    /// Whether it may create files in memory.
    pub uses_memory_files: bool,
    /// The user to run as, in place of root.
    pub own_user: Option<OwnUser>,
    /// The limits of its process.
    pub limits: Limits,
    /// What its cgroup limits, or why it has none.
    pub cgroup: Result<String, String>,
    /// Whether it must not be started outside of its cgroup.
    pub needs_cgroup: bool,
}

/// A user that nothing else has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnUser {
    /// Its id, and that of its group.
    pub id: u32,
    /// Groups whose devices it may use.
    pub groups: Vec<u32>,
}

/// The limits of a process: setrlimit(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The most open files.
    pub open_files: u64,
    /// The most threads, where they can be counted for the VMM alone.
    pub threads: u64,
    /// The most bytes of address space.
    pub address_space: Option<u64>,
    /// The most bytes of each file that it writes.
    pub file_size: Option<u64>,
    /// The most processor time in total, after which the kernel kills it.
    pub cpu_seconds: Option<u64>,
}

impl Plan {
    /// Encodes it.
    ///
    /// # Errors
    /// If it is too large for memory.
    pub fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// Decodes it.
    ///
    /// # Errors
    /// If it is not a plan.
    pub fn decode(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}
