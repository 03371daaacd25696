use std::fmt::Debug;

use crate::error::Error;

/// Why a behaviour was not seen.
#[derive(Debug)]
pub(super) enum Unmet {
    /// It is not as it must be.
    Failed(String),
    /// It could not be looked at.
    Skipped(String),
}

/// What a behaviour comes to.
pub(super) type Seen = Result<(), Unmet>;

impl Unmet {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

impl From<Error> for Unmet {
    fn from(error: Error) -> Self {
        Self::Failed(format!("{error} ({})", error.code()))
    }
}

impl From<std::io::Error> for Unmet {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Fails unless it is so. The text says what was wrong.
pub(super) fn demand(is_so: bool, wrong: impl FnOnce() -> String) -> Seen {
    match is_so {
        true => Ok(()),
        false => Err(Unmet::Failed(wrong())),
    }
}

/// Fails unless something is what it must be.
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Seen {
    demand(found == expected, || {
        format!("{what} is {found:?}, not {expected:?}")
    })
}

/// Fails unless something was refused with the code of an error.
pub(super) fn refused<T>(what: &str, result: Result<T, Error>, code: &str) -> Seen {
    match result {
        Ok(_) => Err(Unmet::Failed(format!(
            "{what} worked, where it must be refused as {code}"
        ))),
        Err(error) => demand(error.code() == code, || {
            format!("{what} is {error} ({}), not {code}", error.code())
        }),
    }
}
