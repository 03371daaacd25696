//! Services in the guest: named processes that the agent supervises.
//!
//! A service is a background process with a name. The agent probes whether it
//! is ready, stops it gracefully, restarts it by its policy, and keeps the
//! newest part of its output. It runs independently of who is attached to the
//! VM, and every attached program sees the same services.
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
//! A [`ServiceSpec`] describes a service: a [`Command`](crate::Command), when
//! it is ready ([`Readiness`]) and alive ([`Liveness`]), whether it is
//! restarted ([`Restart`]), how it is stopped, and which other services it
//! needs. [`Vm::services`](crate::Vm::services) starts and lists services; a
//! [`Service`] is a handle of one.
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
//! The ports that a service [publishes](ServiceSpec::publish) can be reached on
//! this machine until it finishes.
//!
//! When the VM stops, its services are asked to end like all its processes, and
//! none is restarted.

mod error;
mod failure;
mod failure_reason;
mod handle;
mod list;
mod liveness;
mod log_pattern;
mod logs;
mod new_ports;
mod order;
mod owner_request;
mod parse;
mod probe;
mod published;
mod readiness;
mod restart;
mod services;
mod spec;
mod status;

use std::time::Duration;

pub use error::ServiceError;
pub use failure::ServiceFailure;
pub use failure_reason::FailureReason;
pub use handle::Service;
pub use liveness::Liveness;
pub use log_pattern::LogPatternError;
pub use logs::{LogEvent, LogStream, LogsRequest};
pub use parse::ProbeParseError;
pub use probe::{HttpProbe, Probe};
pub use readiness::Readiness;
pub use restart::Restart;
pub use services::{Services, sort_by_needs};
pub use spec::ServiceSpec;
pub use status::{ServiceCounts, ServicePhase, ServiceStatus};

pub(crate) use new_ports::NewPorts;
pub(crate) use owner_request::{PortsOfOwner, ServicesRequest, serve};
pub(crate) use published::{ServicePort, ServicePorts};

/// Converts a duration to milliseconds for the wire. Durations above the
/// maximum of 49 days are clamped to it.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
