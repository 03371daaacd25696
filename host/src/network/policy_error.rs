use thiserror::Error;

/// A part of a policy that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is not the name of a host.
    #[error("{name:?} is not the name of a host: {reason}")]
    Name {
        /// The text.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is not an address or a prefix of addresses.
    #[error("{text:?} is not an address: {reason}")]
    Address {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// These are not ports.
    #[error("{text:?} are not ports: write `443` or `80,443,8000-8999`")]
    Ports {
        /// The text.
        text: String,
    },
}
