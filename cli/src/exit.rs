//! What the shell is told.

/// The program itself failed: nothing can be said about what it was to do.
pub const OUR_OWN: u8 = 125;
/// It was done, but not all of it could be.
pub const INCOMPLETE: u8 = 1;
/// Added to the number of a signal.
pub const SIGNALLED: u8 = 128;
/// Nobody reads our output: as if SIGPIPE had ended us.
pub const UNREAD: u8 = SIGNALLED + 13;
