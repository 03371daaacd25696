//! A VM, from its builder to its end.

mod attached;
mod builder;
mod clock;
mod disk_switch;
mod driver;
mod end;
mod facts;
mod freeze;
mod handle;
mod health;
mod info;
mod lost_link;
mod metrics;
mod network;
#[cfg(test)]
mod on_session;
mod own_quotas;
mod pause;
mod pauser;
mod power_off;
mod requests;
mod restore;
mod saving;
mod service_ports;
mod snapshot;
mod standstill;
mod start;
mod state;
mod stream;
mod warm;

pub use builder::VmBuilder;
pub use end::{End, EndKind, VmEnd};
pub use handle::Vm;
pub use health::Health;
pub use info::{VmDetails, VmInfo, VmStatus};
pub use pause::WhilePaused;
pub use state::VmState;

pub(crate) use service_ports::count_services;
pub(crate) use stream::VmStream;
