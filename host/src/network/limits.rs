/// How much the programs of a guest may use the network. What exceeds it is refused, and
/// counts as a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct NetworkLimits {
    pub(super) connections: usize,
    pub(super) per_minute: u32,
    pub(super) bytes: Option<u64>,
}

impl NetworkLimits {
    /// The most connections that can be open at once. A link to a guest has room for 512
    /// streams, and commands and files need some.
    pub const MAX_CONNECTIONS: usize = 500;

    /// Returns the defaults: 256 connections at once, 6000 in a minute, any number of
    /// bytes.
    pub const fn new() -> Self {
        Self {
            connections: 256,
            per_minute: 6000,
            bytes: None,
        }
    }

    /// Sets how many connections may be open at once, up to
    /// [`MAX_CONNECTIONS`](Self::MAX_CONNECTIONS).
    pub const fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how many connections may be made in a minute. The minute begins with the
    /// first connection, and the next one with the first after its end: at that moment
    /// twice as many can follow each other.
    pub const fn per_minute(mut self, connections: u32) -> Self {
        self.per_minute = connections;
        self
    }

    /// Sets how many bytes may be sent and received in all. When they are used up, all
    /// connections are reset.
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self::new()
    }
}
