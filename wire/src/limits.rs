//! The bounds that every peer keeps and checks.

/// The largest payload of a frame, in bytes.
///
/// Large enough that the header and the system call behind it cost nothing,
/// small enough that one frame does not hold up another stream for long.
pub const MAX_PAYLOAD: u32 = 256 * 1024;

/// The most credit that may be outstanding on one channel of one stream.
///
/// It bounds what a receiver can be made to hold, whatever it grants.
pub const MAX_WINDOW: u32 = 16 * 1024 * 1024;

/// The longest text in a [`Failure`](crate::Failure), in bytes.
pub const MAX_FAILURE_TEXT: usize = 256;

/// The longest build identifier in a [`Hello`](crate::Hello), in bytes.
pub const MAX_BUILD: usize = 64;

/// How many streams may be open on one link at once.
pub const MAX_STREAMS: usize = 512;

/// The longest tag of a process, in bytes.
pub const MAX_TAG: usize = 64;

/// The longest name of a service, in bytes.
pub const MAX_SERVICE_NAME: usize = 48;

/// How much of a process's arguments a list shows, in bytes.
pub const MAX_COMMAND: usize = 256;

/// How many processes one answer to a list holds.
pub const MAX_LISTED: usize = 64;

/// How many of the processes that a command left behind a list shows.
pub const MAX_LEFT: usize = 16;

/// The longest name of a process in a list, in bytes: `TASK_COMM_LEN` of the
/// kernel, without its zero byte.
pub const MAX_LEFT_NAME: usize = 15;

/// How many gaps an output may have within one window of bytes. The agent keeps
/// at least [`MIN_KEPT`] bytes of an output, so there are never more.
pub const MAX_GAPS: usize = 1024;

/// The least that an agent keeps of an output, in bytes.
pub const MIN_KEPT: u32 = 16 * 1024;

/// The longest path, in bytes, as the kernel has it.
pub const MAX_PATH: usize = 4096;

/// The longest message among the [records](crate::files::record) of a channel.
pub const MAX_RECORD: usize = 128 * 1024;

/// The largest file that comes within its record.
pub const MAX_INLINE: usize = 32 * 1024;

/// How much room the extended attributes of one entry have.
pub const MAX_XATTRS: usize = 64 * 1024;

/// How deep a tree may be.
pub const MAX_DEPTH: usize = 256;
