use alloc::{
    borrow::Cow,
    boxed::Box,
    string::{String, ToString},
};

use rustix::io::Errno;
use vmcell_wire::{Failure, FailureKind, Outcome, Stage, WireError, limits::MAX_FAILURE_TEXT};

/// Why a worker ends a job early.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// Nobody wants it any more.
    HungUp,
    /// It cannot be done.
    Failed(Trouble),
}

/// A [`Failure`] that owns its words. It is small, as long as there is none.
#[derive(Clone, Debug)]
pub(crate) struct Trouble(Box<Words>);

#[derive(Clone, Debug)]
struct Words {
    kind: FailureKind,
    errno: u16,
    text: Cow<'static, str>,
}

impl Trouble {
    /// The kernel had no part in it.
    #[cold]
    pub(crate) fn new(kind: FailureKind, text: &'static str) -> Self {
        Self(Box::new(Words {
            kind,
            errno: 0,
            text: Cow::Borrowed(text),
        }))
    }

    /// A system call failed; `text` says what was tried.
    #[cold]
    pub(crate) fn errno(errno: Errno, text: &'static str) -> Self {
        let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
        Self(Box::new(Words {
            kind: FailureKind::from_errno(number),
            errno: number,
            text: Cow::Borrowed(text),
        }))
    }

    /// Names the entry that it is about, when the caller did not.
    #[cold]
    pub(crate) fn at(mut self, path: &[u8]) -> Self {
        let mut text = String::from_utf8_lossy(path).to_string();
        text.push_str(": ");
        text.push_str(&self.0.text);
        self.0.text = Cow::Owned(text);
        self
    }

    pub(crate) fn kind(&self) -> FailureKind {
        self.0.kind
    }

    pub(crate) fn as_failure(&self) -> Failure<'_> {
        Failure {
            kind: self.0.kind,
            errno: self.0.errno,
            stage: Stage::File,
            text: ending(&self.0.text),
        }
    }
}

/// As much of the end of a text as fits: that is where the words are.
fn ending(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MAX_FAILURE_TEXT);
    loop {
        match text.get(start..) {
            Some(ending) => return ending,
            None => start = start.saturating_add(1),
        }
    }
}

impl Stop {
    /// What a job that was stopped answers.
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::HungUp => Outcome::Done,
            Self::Failed(trouble) => Outcome::Failed(trouble.as_failure()),
        }
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Failed(trouble)
    }
}

impl From<Failure<'_>> for Trouble {
    fn from(failure: Failure<'_>) -> Self {
        Self(Box::new(Words {
            kind: failure.kind,
            errno: failure.errno,
            text: Cow::Owned(failure.text.to_string()),
        }))
    }
}

impl From<Failure<'_>> for Stop {
    fn from(failure: Failure<'_>) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<WireError> for Stop {
    /// The host sent what makes no sense.
    fn from(_: WireError) -> Self {
        Trouble::new(FailureKind::Invalid, "the records make no sense").into()
    }
}
