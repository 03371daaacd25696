//! An agent as an ordinary program, and a host that speaks to it by hand.

mod host;
mod running_agent;
mod said;
mod spec;

pub(crate) use host::Host;
pub(crate) use running_agent::{RunningAgent, wait_until_gone};
pub(crate) use said::{Listed, Looked, Said, Serving, code};
pub(crate) use spec::Spec;
