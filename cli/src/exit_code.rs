//! Exit codes of `vmcell`, by the conventions of `env`, `timeout` and shells.

use vmcell::{Cause, Error, ExecFailureKind, ExecStage, Exit};
pub(crate) use vmcell_cli::exit::{BROKEN_PIPE, INCOMPLETE, SIGNAL_BASE, TOOL_FAILED};

/// The arguments are wrong, as the parser says it.
pub(crate) const WRONG_USAGE: u8 = 2;
/// The command ran into its timeout.
pub(crate) const TIMED_OUT: u8 = 124;
/// The command was found, but could not be started.
pub(crate) const NOT_STARTED: u8 = 126;
/// The command was not found.
const NOT_FOUND: u8 = 127;
/// The user's terminal is gone (SIGHUP).
pub(crate) const TERMINAL_GONE: u8 = SIGNAL_BASE + 1;
/// The command was killed, by the OOM killer or by a user (SIGKILL).
const KILLED: u8 = SIGNAL_BASE + 9;
/// The command exceeded its output limit. SIGXFSZ is the signal for programs
/// that exceed their file size limit.
pub(crate) const TOO_MUCH_OUTPUT: u8 = SIGNAL_BASE + 25;

pub(crate) fn of_exit(exit: &Exit) -> u8 {
    of_cause(exit.cause)
}

pub(crate) fn of_cause(cause: Cause) -> u8 {
    match cause {
        Cause::Code(code) => code,
        Cause::Signal(signal) => SIGNAL_BASE.saturating_add(signal.number()),
        Cause::Timeout => TIMED_OUT,
        Cause::OutputLimit => TOO_MUCH_OUTPUT,
        Cause::OutOfMemory | Cause::Killed => KILLED,
        _ => TOOL_FAILED,
    }
}

/// Returns the exit code of `run` or `exec` for an error.
pub(crate) fn of_error(error: &Error) -> u8 {
    match (error, error.cause()) {
        (Error::Exec(failure), _) => match (failure.stage, failure.kind) {
            // It was started, and cannot be found any more.
            (ExecStage::Lookup, _) => TOOL_FAILED,
            (ExecStage::Exec, ExecFailureKind::NotFound) => NOT_FOUND,
            _ => NOT_STARTED,
        },
        (_, Some(cause)) => of_cause(cause),
        _ => TOOL_FAILED,
    }
}
