//! Exit codes that both programs share.

/// The program itself failed.
pub const TOOL_FAILED: u8 = 125;
/// The work was done, but not completely.
pub const INCOMPLETE: u8 = 1;
/// Base of the exit codes for signals, to which the signal's number is added.
pub const SIGNAL_BASE: u8 = 128;
/// The reader of our output is gone, as if SIGPIPE had killed us.
pub const BROKEN_PIPE: u8 = SIGNAL_BASE + 13;
