//! Processes in the guest: commands, their output and how they end.
//!
//! ```text
//!  Command ──exec──────> ExecStream ──> Output      killed when the stream is dropped
//!          ──spawn─────> Process    ──> ExecStream  runs in the background
//! ```

mod captured;
mod command;
mod exit;
mod failure;
mod handle;
mod info;
mod input;
mod output;
mod overflow;
mod parts;
mod processes;
mod read_from;
mod resource;
mod selector;
mod shell;
mod signal;
mod stream;

pub use command::{Command, Input};
pub use exit::{Cause, Exit};
pub use failure::{ExecFailure, ExecFailureKind, ExecStage};
pub use handle::Process;
pub use info::{KeptOutput, LeftProcess, ProcessInfo};
pub use input::ExecInput;
pub use output::{Output, Truncation};
pub use overflow::OverflowPolicy;
pub use parts::{ExecParts, ExecReader, ExecWaiter};
pub use processes::Processes;
pub use read_from::{Offsets, ReadFrom};
pub use resource::Resource;
pub use selector::{ProcessId, ProcessSelector};
pub use signal::{Signal, UnknownSignal};
pub(crate) use stream::ExecRecorder;
pub use stream::{ExecEvent, ExecStream, OutputKind};
