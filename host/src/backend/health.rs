/// Whether a backend could run a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHealth {
    /// Whether it could.
    pub is_available: bool,
    /// What was found, or what is missing and what to do about it, for people.
    pub reason: String,
}

impl BackendHealth {
    /// It could.
    pub fn available(reason: impl Into<String>) -> Self {
        Self {
            is_available: true,
            reason: reason.into(),
        }
    }

    /// It could not.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            is_available: false,
            reason: reason.into(),
        }
    }
}
