/// What a process is to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A host has asked for it.
    Ordinary,
    /// It is a service. The agent decides over its life, and what it prints is
    /// the log of the service.
    Service,
    /// It tells whether a service does its work. No host hears of it.
    Probe,
}

impl Role {
    /// Whether a service is told what happens to it. Its tree ends with it:
    /// what it leaves behind is killed.
    pub(super) fn is_looked_after(self) -> bool {
        self != Self::Ordinary
    }
}
