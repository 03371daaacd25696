use std::fmt;

use serde::{Deserialize, Serialize};

/// A way in which a VMM is confined. What one lets through, another may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// Namespaces of its own: mounts, with a root that contains only what it needs,
    /// processes, network, IPC and host name, and users if the caller is not root.
    Namespaces,
    /// A user id that nothing else has. Only root can give it one.
    User,
    /// Landlock: files that it may open, programs that it may execute, no TCP, no signals
    /// and no abstract sockets of others.
    Landlock,
    /// A filter of system calls: no new processes, no namespaces, no mounts, no debugging, no
    /// sockets but Unix ones.
    Seccomp,
    /// No capabilities, and no way to gain any.
    Capabilities,
    /// Limits of the process: open files, core dumps, locked memory, address space, the size of
    /// files, processor time in total.
    Limits,
    /// A cgroup that limits memory, threads and processor time per second.
    Cgroup,
}

impl Layer {
    /// All layers, in the order in which reports list them.
    pub const ALL: [Self; 7] = [
        Self::Namespaces,
        Self::User,
        Self::Landlock,
        Self::Seccomp,
        Self::Capabilities,
        Self::Limits,
        Self::Cgroup,
    ];

    /// Returns a stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::User => "user",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Capabilities => "capabilities",
            Self::Limits => "limits",
            Self::Cgroup => "cgroup",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a VMM is confined in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayerStatus {
    /// The way.
    pub layer: Layer,
    /// Whether it is in effect.
    pub is_active: bool,
    /// What exactly is in effect, or why nothing is.
    pub detail: String,
}

impl LayerStatus {
    /// Creates the status of a layer that is in effect.
    pub fn active(layer: Layer, detail: impl Into<String>) -> Self {
        Self {
            layer,
            is_active: true,
            detail: detail.into(),
        }
    }

    /// Creates the status of a layer that is not.
    pub fn inactive(layer: Layer, detail: impl Into<String>) -> Self {
        Self {
            layer,
            is_active: false,
            detail: detail.into(),
        }
    }
}
