use serde::{Deserialize, Serialize};

use crate::limits::MAX_FAILURE_TEXT;

/// Why the agent could not do what was asked.
///
/// A command that started and then ended with a nonzero code is not a failure:
/// it is an [`Exit`](crate::Exit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure<'a> {
    /// What sort of failure.
    pub kind: FailureKind,
    /// The kernel's error number, or 0 if the kernel had no part in it.
    pub errno: u16,
    /// How far the request got.
    pub stage: Stage,
    /// A few words for people, at most
    /// [`MAX_FAILURE_TEXT`](crate::limits::MAX_FAILURE_TEXT) bytes.
    pub text: &'a str,
}

impl<'a> Failure<'a> {
    /// A failure that the kernel had no part in.
    pub fn new(kind: FailureKind, stage: Stage, text: &'a str) -> Self {
        Self {
            kind,
            errno: 0,
            stage,
            text,
        }
    }

    /// A failed system call; the kind follows from the error number.
    pub fn from_errno(errno: u16, stage: Stage, text: &'a str) -> Self {
        Self {
            kind: FailureKind::from_errno(errno),
            errno,
            stage,
            text,
        }
    }

    /// Whether the texts keep their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.text.len() <= MAX_FAILURE_TEXT
    }
}

/// What sort of failure it was: what the caller could do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FailureKind {
    /// The request itself makes no sense.
    Invalid,
    /// Something that the request names does not exist.
    NotFound,
    /// The guest's kernel does not permit it.
    Denied,
    /// A limit of the guest or of the agent is reached.
    Limit,
    /// The agent does not know this request, or its kernel cannot serve it.
    Unsupported,
    /// The guest's disk or devices failed, or anything else.
    Other,
    /// It clashes with what is there: a tag that is taken, a process that
    /// still runs, a file that is not as expected.
    Conflict,
}

impl FailureKind {
    /// The kind that fits an error number of Linux (errno(3)).
    pub fn from_errno(errno: u16) -> Self {
        match errno {
            // ENOENT, ESRCH, ENOTDIR; ECONNREFUSED: nobody listens
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

/// How far a request got before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stage {
    /// Reading the request.
    Request,
    /// Making the process's cgroup.
    Cgroup,
    /// Making its pipes.
    Pipes,
    /// Making the process.
    Clone,
    /// Setting its session, descriptors and signals.
    Setup,
    /// Entering its working directory.
    WorkingDirectory,
    /// Finding and executing the program.
    Exec,
    /// Finding out who the user is, or becoming that user.
    User,
    /// Setting the limits of the process or its cgroup.
    Limits,
    /// Finding the process that the request names.
    Process,
    /// Working on files.
    File,
    /// Making or using a terminal.
    Terminal,
    /// Looking after a service.
    Service,
    /// Connecting to a port of the guest.
    Dial,
}
