/// Whether a backend can run VMs on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHealth {
    /// Whether it can.
    pub is_available: bool,
    /// What was found, or what is missing and how to fix it, as text for
    /// people.
    pub reason: String,
}

impl BackendHealth {
    /// The health of a backend that can run VMs.
    pub fn available(reason: impl Into<String>) -> Self {
        Self {
            is_available: true,
            reason: reason.into(),
        }
    }

    /// The health of a backend that cannot.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            is_available: false,
            reason: reason.into(),
        }
    }
}
