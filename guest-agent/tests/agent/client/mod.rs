//! Runs the agent as an ordinary program, with a host that speaks the protocol
//! directly.

mod host;
mod reply;
mod running_agent;
mod spec;

pub(crate) use host::Host;
pub(crate) use reply::{Listed, Reply, ServiceState, TerminalSnapshot, code};
pub(crate) use running_agent::{RunningAgent, wait_until_gone};
pub(crate) use spec::Spec;
