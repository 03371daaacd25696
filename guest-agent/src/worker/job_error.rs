use alloc::{
    borrow::Cow,
    boxed::Box,
    string::{String, ToString},
};

use rustix::io::Errno;
use vmcell_wire::{Failure, FailureKind, Outcome, Stage, WireError, limits::MAX_FAILURE_TEXT};

/// The reason why a worker ends a job early.
#[derive(Clone, Debug)]
pub(crate) enum JobError {
    /// The host has cancelled the job.
    Cancelled,
    Failed(FileError),
}

/// The result of a step of a job.
pub(crate) type JobResult<T> = Result<T, JobError>;

/// A [`Failure`] at [`Stage::File`] that owns its text. It is boxed so that a
/// `Result` stays small.
#[derive(Clone, Debug)]
pub(crate) struct FileError(Box<Inner>);

/// The result of a file operation that cannot be cancelled.
pub(crate) type FileResult<T> = Result<T, FileError>;

#[derive(Clone, Debug)]
struct Inner {
    kind: FailureKind,
    errno: u16,
    text: Cow<'static, str>,
}

impl FileError {
    /// Creates a failure without an error number.
    #[cold]
    pub(crate) fn new(kind: FailureKind, text: &'static str) -> Self {
        Self(Box::new(Inner {
            kind,
            errno: 0,
            text: Cow::Borrowed(text),
        }))
    }

    /// Creates the failure of a system call; `text` names the operation.
    #[cold]
    pub(crate) fn errno(errno: Errno, text: &'static str) -> Self {
        let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
        Self(Box::new(Inner {
            kind: FailureKind::from_errno(number),
            errno: number,
            text: Cow::Borrowed(text),
        }))
    }

    /// Puts the path of the entry before the text, for an entry that the request
    /// did not name.
    #[cold]
    pub(crate) fn with_path(mut self, path: &[u8]) -> Self {
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
            text: last_part(&self.0.text),
        }
    }
}

/// Cuts a text to the length that a failure may have. The end stays, because the
/// reason follows the path.
fn last_part(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MAX_FAILURE_TEXT);
    loop {
        match text.get(start..) {
            Some(part) => return part,
            None => start = start.saturating_add(1),
        }
    }
}

impl JobError {
    /// Returns the outcome that the host gets.
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Cancelled => Outcome::Done,
            Self::Failed(failure) => Outcome::Failed(failure.as_failure()),
        }
    }
}

impl From<FileError> for JobError {
    fn from(failure: FileError) -> Self {
        Self::Failed(failure)
    }
}

impl From<Failure<'_>> for FileError {
    fn from(failure: Failure<'_>) -> Self {
        Self(Box::new(Inner {
            kind: failure.kind,
            errno: failure.errno,
            text: Cow::Owned(failure.text.to_string()),
        }))
    }
}

impl From<Failure<'_>> for JobError {
    fn from(failure: Failure<'_>) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<WireError> for JobError {
    fn from(_: WireError) -> Self {
        FileError::new(FailureKind::Invalid, "the records are malformed").into()
    }
}
