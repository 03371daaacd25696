use std::{io, path::PathBuf};

use super::Secret;

/// Why there is no such secret. Nothing of a value is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// No secret can have this name. It is not repeated, because it may be the value.
    #[error(
        "this cannot be the name of a secret: use 1 to {} letters, digits, dots, hyphens and \
         underscores",
        Secret::MAX_NAME
    )]
    Name,

    /// The value is empty.
    #[error("the value of the secret {name:?} is empty")]
    Empty {
        /// Its name.
        name: String,
    },

    /// The value is too long.
    #[error(
        "the value of the secret {name:?} is longer than {} bytes",
        Secret::MAX_LENGTH
    )]
    TooLong {
        /// Its name.
        name: String,
    },

    /// The value is not UTF-8.
    #[error("the value of the secret {name:?} is not UTF-8: encode it, with base64 for example")]
    NotUtf8 {
        /// Its name.
        name: String,
    },

    /// The value contains a zero byte, which no environment variable can contain.
    #[error(
        "the value of the secret {name:?} contains a zero byte: encode it, with base64 for \
             example"
    )]
    ZeroByte {
        /// Its name.
        name: String,
    },

    /// The file with the value cannot be read.
    #[error("the file {} with the secret {name:?} cannot be read", path.display())]
    File {
        /// Its name.
        name: String,
        /// The path of the file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// The environment variable with the value is not set.
    #[error("the environment variable {variable} with the secret {name:?} is not set")]
    NoVariable {
        /// Its name.
        name: String,
        /// The name of the variable.
        variable: String,
    },

    /// A provider has not returned the value.
    #[error("the provider has no secret {name:?}")]
    Provider {
        /// Its name.
        name: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
