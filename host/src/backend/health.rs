use super::Feature;

/// Whether a backend can run VMs on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendHealth {
    /// Whether it can.
    pub is_available: bool,
    /// What was found, or what is missing and how to fix it, as text for
    /// people.
    pub reason: String,
    /// What it can do with a VM, beyond running it.
    pub features: Vec<Feature>,
}

impl BackendHealth {
    /// The health of a backend that can run VMs.
    pub fn available(reason: impl Into<String>) -> Self {
        Self {
            is_available: true,
            reason: reason.into(),
            features: Vec::new(),
        }
    }

    /// The health of a backend that cannot.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            is_available: false,
            reason: reason.into(),
            features: Vec::new(),
        }
    }

    /// Adds what it can do with a VM, beyond running it: see
    /// [`Launched::control`](super::Launched::control).
    #[must_use]
    pub fn with(mut self, feature: Feature) -> Self {
        self.features.push(feature);
        self
    }
}
