//! Services in the guest: named processes that the agent looks after.
//!
//! A service is a background process with a name. The agent knows when it is
//! ready, ends it with care, starts it again when it should, and keeps the end
//! of what it prints. It goes on whoever is attached to the VM, and every
//! program that is sees the same.
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
//! A [`ServiceSpec`] says what it is: a [`Command`](crate::Command), when it is
//! ready ([`Readiness`]) and alive ([`Liveness`]), whether it is started again
//! ([`Restart`]), how it is ended, and which others it needs.
//! [`Vm::services`](crate::Vm::services) starts and lists them; a [`Service`] is
//! a handle of one.
//!
//! ```no_run
//! # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
//! use vmcell::{Command, service::{Probe, Restart, ServiceSpec}};
//!
//! let spec = ServiceSpec::new(Command::new("httpd").args(["-f", "-p", "8080"]))
//!     .ready(Probe::http(8080, "/"))
//!     .restart(Restart::on_failure());
//! let web = vm.services().start("web", spec).await?;
//! web.ready().await?;
//! let page = vm.exec(["wget", "-qO-", "http://127.0.0.1:8080/"]).await?;
//! web.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! What a service [publishes](ServiceSpec::publish) can be reached on this
//! machine until it is over.
//!
//! When the VM is stopped its services are asked to end, as all its processes
//! are, and none is started again.

mod error;
mod failure;
mod handle;
mod liveness;
mod logs;
mod order;
mod parse;
mod probe;
mod published;
mod readiness;
mod restart;
mod services;
mod spec;
mod status;
mod trouble;

use std::time::Duration;

pub use error::ServiceError;
pub use failure::ServiceFailure;
pub use handle::Service;
pub use liveness::Liveness;
pub use logs::{LogEvent, LogStream, LogsRequest};
pub use parse::ProbeParseError;
pub use probe::{HttpProbe, Probe};
pub use readiness::Readiness;
pub use restart::Restart;
pub use services::{Services, in_order};
pub use spec::ServiceSpec;
pub use status::{ServiceCounts, ServicePhase, ServiceStatus};
pub use trouble::ServiceTrouble;

/// A time as it goes over a link. More than it can say is the most that it can
/// say: 49 days.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
