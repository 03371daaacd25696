/// What a process runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A request of a host.
    Ordinary,
    /// A service. The agent controls its life, and its output is the log of the
    /// service.
    Service,
    /// A probe of a service. Hosts cannot see it.
    Probe,
}

impl Role {
    /// Returns whether a service is notified of what happens to it. Descendants
    /// that it leaves behind are killed.
    pub(super) fn is_supervised(self) -> bool {
        self != Self::Ordinary
    }
}
