use std::{io, path::PathBuf};

/// Why a receipt cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// The user has no state folder.
    #[error("there is no folder for receipts: set XDG_STATE_HOME or HOME")]
    NoFolder,

    /// A file of the log cannot be used.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// The log and its head do not fit each other, so nothing is appended.
    #[error(
        "the log of receipts in {} is damaged: {reason}. `vmcell receipt verify` shows where; move \
         the folder away to begin a new log",
        folder.display()
    )]
    Damaged {
        /// The folder of the log.
        folder: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// A receipt has a number that is not an integer.
    #[error("a receipt contains a number that is not an integer")]
    Fraction,

    /// A receipt is longer than a line may be.
    #[error("a receipt is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },

    /// The signing key cannot be used.
    #[error("the signing key {}: {reason}", path.display())]
    Key {
        /// Its file.
        path: PathBuf,
        /// Why, and what to do.
        reason: &'static str,
    },

    /// A text is not a public key.
    #[error("this is not a public key: use the 64 hexadecimal digits of `vmcell receipt key`")]
    PublicKey,
}

impl ReceiptError {
    /// Returns a name of the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoFolder => "no-receipt-folder",
            Self::Io { .. } => "receipt-file",
            Self::Damaged { .. } => "receipts-damaged",
            Self::Fraction | Self::TooLong { .. } => "bad-receipt",
            Self::Key { .. } | Self::PublicKey => "receipt-key",
        }
    }

    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}
