use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::MAX_FAILURE_TEXT;

/// Why the agent could not serve a request.
///
/// A command that started and then ended with a nonzero code is not a failure:
/// it is an [`Exit`](crate::Exit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure<'a> {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The errno, or 0 if no system call failed.
    pub errno: u16,
    /// How far the request got.
    pub stage: Stage,
    /// A human-readable description of at most
    /// [`MAX_FAILURE_TEXT`](crate::limits::MAX_FAILURE_TEXT) bytes.
    pub text: &'a str,
}

impl<'a> Failure<'a> {
    /// Creates a failure without an errno.
    pub const fn new(kind: FailureKind, stage: Stage, text: &'a str) -> Self {
        Self {
            kind,
            errno: 0,
            stage,
            text,
        }
    }

    /// Creates the failure of a system call; the kind is derived from the errno.
    pub fn from_errno(errno: u16, stage: Stage, text: &'a str) -> Self {
        Self {
            kind: FailureKind::from_errno(errno),
            errno,
            stage,
            text,
        }
    }

    /// Returns whether the text is within its limit.
    pub(crate) fn is_valid(&self) -> bool {
        self.text.len() <= MAX_FAILURE_TEXT
    }
}

/// The kind of a failure, grouped by what the caller can do about it.
///
/// A kind that this version of the crate does not know is decoded as
/// [`Other`](Self::Other).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum FailureKind {
    /// The request itself is invalid.
    Invalid,
    /// Something that the request refers to does not exist.
    NotFound,
    /// It is not permitted.
    Denied,
    /// A limit of the guest or of the agent is reached.
    Limit,
    /// The agent does not know this request, or the guest's kernel lacks support.
    Unsupported,
    /// The guest's disk or devices failed, or anything else.
    Other,
    /// It conflicts with the current state: a tag that is in use, a process that
    /// is still running, a file that is not as expected.
    Conflict,
}

impl FailureKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Invalid,
        Self::NotFound,
        Self::Denied,
        Self::Limit,
        Self::Unsupported,
        Self::Other,
        Self::Conflict,
    ];

    /// Returns the kind for an errno of Linux (errno(3)).
    pub fn from_errno(errno: u16) -> Self {
        match errno {
            // ENOENT, ESRCH, ENOTDIR; ECONNREFUSED: no listener
            2 | 3 | 20 | 111 => Self::NotFound,
            // EPERM, EACCES, EROFS; EXDEV: a path leaves its root
            1 | 13 | 30 | 18 => Self::Denied,
            // EEXIST, ENOTEMPTY
            17 | 39 => Self::Conflict,
            // E2BIG, EINVAL, ENAMETOOLONG, ELOOP, ENOEXEC, EISDIR
            7 | 22 | 36 | 40 | 8 | 21 => Self::Invalid,
            // EAGAIN, ENOMEM, ENFILE, EMFILE, ENOSPC, EDQUOT
            11 | 12 | 23 | 24 | 28 | 122 => Self::Limit,
            // ENOSYS, EOPNOTSUPP
            38 | 95 => Self::Unsupported,
            _ => Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for FailureKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        Ok(numbered(&Self::ALL, number).unwrap_or(Self::Other))
    }
}

/// Returns the value with this number. A variant is encoded as its number is.
fn numbered<T: Copy>(all: &[T], number: u32) -> Option<T> {
    all.get(usize::try_from(number).ok()?).copied()
}

/// How far a request got before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Stage {
    /// Reading the request.
    Request,
    /// Creating the process's cgroup.
    Cgroup,
    /// Creating its pipes.
    Pipes,
    /// Creating the process.
    Clone,
    /// Setting its session, descriptors and signals.
    Setup,
    /// Entering its working directory.
    WorkingDirectory,
    /// Finding and executing the program.
    Exec,
    /// Looking up the user, or changing to that user.
    User,
    /// Setting the limits of the process or its cgroup.
    Limits,
    /// Finding the process that the request refers to.
    Process,
    /// Accessing files.
    File,
    /// Creating or using a terminal.
    Terminal,
    /// Managing a service.
    Service,
    /// Connecting to a port of the guest.
    Dial,
    /// A stage that this version of the crate does not know. It is never sent.
    #[serde(skip)]
    Unknown,
}

impl Stage {
    /// All stages that are sent, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Request,
        Self::Cgroup,
        Self::Pipes,
        Self::Clone,
        Self::Setup,
        Self::WorkingDirectory,
        Self::Exec,
        Self::User,
        Self::Limits,
        Self::Process,
        Self::File,
        Self::Terminal,
        Self::Service,
        Self::Dial,
    ];
}

impl<'de> Deserialize<'de> for Stage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        Ok(numbered(&Self::ALL, number).unwrap_or(Self::Unknown))
    }
}
