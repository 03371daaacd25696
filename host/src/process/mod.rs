//! Commands in the guest: what to run, what comes of it.

mod command;
mod exit;
mod failure;
mod output;
mod stream;

pub use command::{Command, Input};
pub use exit::{Cause, Exit};
pub use failure::{ExecFailure, ExecFailureKind, ExecStage};
pub use output::Output;
pub use stream::{ExecEvent, ExecInput, ExecStream};
