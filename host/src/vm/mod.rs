//! A VM, from its builder to its end.

mod builder;
mod driver;
mod handle;
mod health;
mod start;
mod state;

pub use builder::VmBuilder;
pub use handle::Vm;
pub use health::Health;
pub use state::{End, VmState};
