use alloc::borrow::Cow;

use vmcell_wire::{Failure, FailureKind, Stage, limits::MAX_FAILURE_TEXT};

use crate::truncated::truncated;

/// Why a request about a service failed, with a text that may be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceError {
    kind: FailureKind,
    errno: u16,
    stage: Stage,
    text: Cow<'static, str>,
}

impl ServiceError {
    pub(super) fn new(kind: FailureKind, text: impl Into<Cow<'static, str>>) -> Self {
        let mut text = text.into();
        if text.len() > MAX_FAILURE_TEXT {
            text = Cow::Owned(truncated(&text, MAX_FAILURE_TEXT));
        }
        Self {
            kind,
            errno: 0,
            stage: Stage::Service,
            text,
        }
    }

    pub(super) fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FailureKind::Invalid, text)
    }

    pub(super) fn as_failure(&self) -> Failure<'_> {
        Failure {
            kind: self.kind,
            errno: self.errno,
            stage: self.stage,
            text: &self.text,
        }
    }
}

impl From<Failure<'static>> for ServiceError {
    fn from(failure: Failure<'static>) -> Self {
        Self {
            kind: failure.kind,
            errno: failure.errno,
            stage: failure.stage,
            text: Cow::Borrowed(failure.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        let error = ServiceError::invalid("ä".repeat(300));
        assert!(error.as_failure().text.len() <= MAX_FAILURE_TEXT);
    }
}
