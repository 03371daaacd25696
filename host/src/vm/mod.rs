//! A VM, from its builder to its end.

mod builder;
mod driver;
mod handle;
mod health;
mod info;
#[cfg(test)]
mod on_session;
mod start;
mod state;
mod visit;

pub use builder::VmBuilder;
pub use handle::Vm;
pub use health::Health;
pub use info::VmInfo;
pub use state::{End, VmState};
