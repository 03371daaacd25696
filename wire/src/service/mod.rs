//! Services.
//!
//! A service is a named background process that the agent supervises: it probes
//! whether it is ready, stops it gracefully, and restarts it by its policy.
//!
//! ```text
//!            needs are ready        probe succeeds        stop request
//!  Waiting ------------------> Starting ------> Ready/Running ------> Stopping ---> Stopped
//!     |                          |   ^               |
//!     | a need has failed        |   | after a pause | exit, or probe fails
//!     v                          v   |               v
//!   Failed <------------------ Failed  Restarting <--+-- depending on the policy
//! ```
//!
//! Standard output and error of its process are one stream, its log, which
//! continues across restarts.

pub mod log_pattern;
mod probe;
mod spec;
mod state;

use serde::{Deserialize, Serialize};

pub use probe::{Http, LivenessProbe, Probe, ReadinessProbe};
pub use spec::{Restart, RestartPolicy, Spec, StopPolicy};
pub use state::{FailureReason, Phase, ServiceState};

use crate::{
    limits::MAX_SERVICE_NAME,
    request_properties::{Outputs, Recovery},
};

/// A request about services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ServiceRequest<'a> {
    /// Starts a service, which may have to wait for others first:
    /// [`Outcome::Service`](crate::Outcome::Service) at once. A service that
    /// has [ended](Phase::is_final) is started again with this spec, and its log
    /// continues.
    ///
    /// It fails with [`Conflict`](crate::FailureKind::Conflict) while the
    /// service has not ended, unless `ticket` or `if_same` permits it.
    Start(StartService<'a>),
    /// Waits for a state: [`Outcome::Service`](crate::Outcome::Service).
    Wait {
        /// The service.
        name: &'a str,
        /// The state to wait for.
        until: WaitFor,
    },
    /// Returns its state: [`Outcome::Service`](crate::Outcome::Service) at once.
    GetState {
        /// The service.
        name: &'a str,
    },
    /// Ends its processes, with the signal and the grace period of its spec:
    /// [`Outcome::Service`](crate::Outcome::Service) when they are gone. Has no
    /// effect on a service that has ended.
    Stop {
        /// The service.
        name: &'a str,
    },
    /// Stops it if necessary and starts it with its current spec:
    /// [`Outcome::Service`](crate::Outcome::Service) when the old processes are
    /// gone.
    Restart {
        /// The service.
        name: &'a str,
    },
    /// Removes a service that has ended, and its log:
    /// [`Outcome::Done`](crate::Outcome::Done).
    Remove {
        /// The service.
        name: &'a str,
    },
    /// Lists services in the order of their names, one
    /// [`Event::Service`](crate::Event::Service) each:
    /// [`Outcome::EndOfList`](crate::Outcome::EndOfList).
    List {
        /// Lists only services with names after this one.
        after: &'a str,
    },
    /// Reads the log: [`Event::Attached`](crate::Event::Attached) with the
    /// offset at which `stdout` begins, data of the channel `Stdout` and
    /// [`Event::Gap`](crate::Event::Gap), the end of the channel,
    /// [`Outcome::Service`](crate::Outcome::Service).
    ReadLog(ReadLog<'a>),
}

impl ServiceRequest<'_> {
    pub(crate) const fn recovery(&self) -> Recovery {
        match self {
            // The agent recognises a repeated start by its ticket. The others have
            // no further effect.
            Self::Start(_)
            | Self::Wait { .. }
            | Self::GetState { .. }
            | Self::Stop { .. }
            | Self::Restart { .. } => Recovery::Repeat,
            Self::Remove { .. } => Recovery::RepeatRemoval,
            Self::List { .. } => Recovery::RepeatList,
            Self::ReadLog(_) => Recovery::ResumeLog,
        }
    }

    pub(crate) const fn outputs(&self) -> Outputs {
        match self {
            Self::ReadLog(read) => Outputs::stdout(read.window),
            Self::Start(_)
            | Self::Wait { .. }
            | Self::GetState { .. }
            | Self::Stop { .. }
            | Self::Restart { .. }
            | Self::Remove { .. }
            | Self::List { .. } => Outputs::NONE,
        }
    }

    pub(crate) const fn with_window(self, window: u32) -> Self {
        match self {
            Self::ReadLog(read) => Self::ReadLog(ReadLog { window, ..read }),
            _ => self,
        }
    }
}

/// The parameters of starting a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartService<'a> {
    /// Its name: see [`is_valid_name`].
    pub name: &'a str,
    /// A random number that the host chooses for each start. It makes the request
    /// idempotent, so that a host that lost its link can send it again.
    pub ticket: u64,
    /// Whether to succeed if the service has not ended but has the same spec.
    pub if_same: bool,
    /// The encoded [`Spec`], which the agent stores unchanged.
    pub spec: &'a [u8],
}

/// The state to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitFor {
    /// It is ready, or running without a probe, or has ended.
    Ready,
    /// It has ended: stopped or failed. A restart does not count.
    Ended,
}

/// The parameters of reading a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadLog<'a> {
    /// The service.
    pub name: &'a str,
    /// Where to begin.
    pub from: LogStart,
    /// Whether to wait for more until the service has ended. Otherwise reading ends
    /// at the current end of the log.
    pub follow: bool,
    /// How many bytes may be sent before more credit is granted.
    pub window: u32,
}

/// Where reading a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogStart {
    /// At this offset, or at the oldest buffered byte.
    Offset(u64),
    /// This many lines before the end; an incomplete line counts.
    Lines(u32),
}

/// Returns whether this is a valid name of a service: up to [`MAX_SERVICE_NAME`]
/// ASCII letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
///
/// ```
/// use vmcell_wire::service::is_valid_name;
///
/// assert!(is_valid_name("web-1.main"));
/// assert!(!is_valid_name(".hidden"));
/// assert!(!is_valid_name("a/b"));
/// ```
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    let first = name.as_bytes().first();
    name.len() <= MAX_SERVICE_NAME
        && first.is_some_and(u8::is_ascii_alphanumeric)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
