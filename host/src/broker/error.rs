use std::io;

use crate::network::PolicyError;

/// Why a secret cannot be brokered. Nothing of its value is in the error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The host has no valid name.
    #[error("a secret cannot be brokered for this host: name one host, without a wildcard")]
    Host(#[from] PolicyError),

    /// No secret can be sent in this header.
    #[error(
        "a secret cannot be sent in the header {header:?}: name one of a request, such as Authorization"
    )]
    Header {
        /// Its name.
        header: String,
    },

    /// No field of a query has this name.
    #[error("a field of a query needs a name")]
    Field,

    /// The value cannot be sent in a header.
    #[error(
        "the secret {name:?} cannot be sent in a header: its value has line ends or control characters"
    )]
    Value {
        /// The name of the secret.
        name: String,
    },

    /// There are no random bytes for a placeholder.
    #[error("no placeholder can be made")]
    Random(#[source] io::Error),
}
