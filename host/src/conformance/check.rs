use std::fmt::Debug;

use crate::error::Error;

/// Why a check did not pass.
#[derive(Debug)]
pub(super) enum CheckError {
    /// The behaviour is wrong.
    Failed(String),
    /// It could not be checked.
    Skipped(String),
}

/// The result of a check.
pub(super) type CheckResult = Result<(), CheckError>;

impl CheckError {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

impl From<Error> for CheckError {
    fn from(error: Error) -> Self {
        Self::Failed(format!("{error} ({})", error.code()))
    }
}

impl From<std::io::Error> for CheckError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Fails unless the condition holds. `wrong` returns the reason.
pub(super) fn ensure(is_so: bool, wrong: impl FnOnce() -> String) -> CheckResult {
    match is_so {
        true => Ok(()),
        false => Err(CheckError::Failed(wrong())),
    }
}

/// Fails unless a value equals the expected one.
pub(super) fn ensure_eq<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> CheckResult {
    ensure(found == expected, || {
        format!("{what} is {found:?}, not {expected:?}")
    })
}

/// Fails unless the result is an error with this code.
pub(super) fn ensure_error_code<T>(
    what: &str,
    result: Result<T, Error>,
    code: &str,
) -> CheckResult {
    match result {
        Ok(_) => Err(CheckError::Failed(format!(
            "{what} worked, where it must be refused as {code}"
        ))),
        Err(error) => ensure(error.code() == code, || {
            format!("{what} is {error} ({}), not {code}", error.code())
        }),
    }
}
