//! Processes in the guest: what to run, what comes of it.
//!
//! ```text
//!  Command ──exec──────> ExecStream ──> Output      it ends with the stream
//!          ──spawn─────> Process    ──> ExecStream  it goes on by itself
//! ```

mod collected;
mod command;
mod exit;
mod failure;
mod handle;
mod info;
mod input;
mod output;
mod overflow;
mod parts;
mod position;
mod processes;
mod resource;
mod selector;
mod shell;
mod stream;

pub use command::{Command, Input};
pub use exit::{Cause, Exit};
pub use failure::{ExecFailure, ExecFailureKind, ExecStage};
pub use handle::Process;
pub use info::{KeptOutput, LeftProcess, ProcessInfo};
pub use input::ExecInput;
pub use output::{Output, Truncation};
pub use overflow::OverflowPolicy;
pub use parts::{ExecEnd, ExecParts, ExecReader};
pub use position::{Offsets, ReadFrom};
pub use processes::Processes;
pub use resource::Resource;
pub use selector::{ProcessId, ProcessSelector};
pub use stream::{ExecEvent, ExecStream, OutputKind};
