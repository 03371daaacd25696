//! What the shell is told, by the conventions of `env`, `timeout` and shells.

use vmcell::{Cause, Error, ExecFailureKind, Exit};

/// vmcell itself failed: nothing can be said about the command.
pub(crate) const OUR_OWN: u8 = 125;
/// The command took too long.
pub(crate) const TIMED_OUT: u8 = 124;
/// Added to the number of a signal.
pub(crate) const SIGNALLED: u8 = 128;

pub(crate) fn of_exit(exit: &Exit) -> u8 {
    match exit.cause {
        Cause::Code(code) => code,
        Cause::Signal(signal) => SIGNALLED.saturating_add(signal),
        _ => OUR_OWN,
    }
}

pub(crate) fn of_error(error: &Error) -> u8 {
    match error {
        Error::Exec(failure) if failure.kind == ExecFailureKind::NotFound => 127,
        Error::Exec(_) => 126,
        Error::ExecTimeout { .. } => TIMED_OUT,
        _ => OUR_OWN,
    }
}
