//! What is said about services.
//!
//! A service is a named background process that the agent looks after: it knows
//! when it is ready, ends it with care, and starts it again when it should.
//!
//! ```text
//!            needs are ready        probe succeeds           asked to
//!  Waiting ------------------> Starting ------> Ready/Running ------> Stopping ---> Stopped
//!     |                          |   ^               |
//!     | a need has failed        |   | pause is over | exit, or probe fails
//!     v                          v   |               v
//!   Failed <------------------ Failed  Restarting <--+-- as the policy says
//! ```
//!
//! Both outputs of its process are one, its log, which goes on from one run to
//! the next.

mod probe;
mod spec;
mod state;

use serde::{Deserialize, Serialize};

pub use probe::{Alive, Http, Probe, Ready};
pub use spec::{Restart, RestartPolicy, Spec, StopBy};
pub use state::{FailureReason, Phase, State};

use crate::limits::MAX_SERVICE_NAME;

/// A request about services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Service<'a> {
    /// Starts a service, which may have to wait for others first:
    /// [`Outcome::Service`](crate::Outcome::Service) at once. One that is over
    /// starts anew with this spec, and its log goes on.
    ///
    /// It fails with [`Conflict`](crate::FailureKind::Conflict) while the
    /// service is not over, unless `ticket` or `if_same` permits it.
    Start(StartService<'a>),
    /// Waits: [`Outcome::Service`](crate::Outcome::Service).
    Wait {
        /// Which service.
        name: &'a str,
        /// For what.
        until: Until,
    },
    /// Asks how it is: [`Outcome::Service`](crate::Outcome::Service) at once.
    Look {
        /// Which service.
        name: &'a str,
    },
    /// Ends its processes, with the signal and the patience of its spec:
    /// [`Outcome::Service`](crate::Outcome::Service) when they are gone. One
    /// that is over already stays as it is.
    Stop {
        /// Which service.
        name: &'a str,
    },
    /// Stops it if need be and starts it with the spec that it has:
    /// [`Outcome::Service`](crate::Outcome::Service) when the old processes are
    /// gone.
    Restart {
        /// Which service.
        name: &'a str,
    },
    /// Forgets a service that is over, and its log:
    /// [`Outcome::Done`](crate::Outcome::Done).
    Remove {
        /// Which service.
        name: &'a str,
    },
    /// Lists services in the order of their names, one
    /// [`Event::Service`](crate::Event::Service) each:
    /// [`Outcome::EndOfList`](crate::Outcome::EndOfList).
    List {
        /// Only those with names behind this one.
        after: &'a str,
    },
    /// Reads the log: [`Event::Attached`](crate::Event::Attached) with the
    /// offset at which `stdout` begins, data of the channel `Stdout` and
    /// [`Event::Gap`](crate::Event::Gap), the end of the channel,
    /// [`Outcome::Service`](crate::Outcome::Service).
    Logs(Logs<'a>),
}

/// Starts a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartService<'a> {
    /// What it is called: see [`is_valid_name`].
    pub name: &'a str,
    /// A number that the host draws for each start. The same start asked for
    /// twice is one: the answer to the first was lost with its link.
    pub ticket: u64,
    /// Whether it is fine that the service is not over, if it has this very
    /// spec.
    pub if_same: bool,
    /// What it is: the bytes of a [`Spec`], which the agent keeps as they are.
    pub spec: &'a [u8],
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// That it is ready, or running without a probe, or over.
    Ready,
    /// That it is over: stopped or failed. A restart does not count.
    Over,
}

/// Reads a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs<'a> {
    /// Of which service.
    pub name: &'a str,
    /// From where on.
    pub from: LogStart,
    /// Whether to wait for more until the service is over. Else it ends with
    /// what there is now.
    pub follow: bool,
    /// How many bytes may be sent before more credit comes.
    pub window: u32,
}

/// Where reading a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogStart {
    /// At this offset, or at the oldest byte that is kept.
    Offset(u64),
    /// So many lines before the end; an unfinished line counts.
    Lines(u32),
}

/// Whether a service may be called so: up to
/// [`MAX_SERVICE_NAME`] letters and digits of
/// ASCII, `-`, `_` and `.`, of which the last three do not come first.
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
