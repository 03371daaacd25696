//! The limits that every peer observes and checks.

/// The largest payload of a frame, in bytes.
///
/// Large enough to make the cost of the header and the system call negligible,
/// small enough that one frame does not delay other streams for long.
pub const MAX_PAYLOAD: u32 = 256 * 1024;

/// The most credit that may be outstanding on one channel of one stream.
///
/// It bounds the data that a receiver must be able to buffer.
pub const MAX_WINDOW: u32 = 16 * 1024 * 1024;

/// The longest text in a [`Failure`](crate::Failure), in bytes.
pub const MAX_FAILURE_TEXT: usize = 256;

/// The longest build identifier in a [`Hello`](crate::Hello), in bytes.
pub const MAX_BUILD: usize = 64;

/// The maximum number of open streams on one link.
pub const MAX_STREAMS: usize = 512;

/// The longest tag of a process, in bytes.
pub const MAX_TAG: usize = 64;

/// The longest name of a service, in bytes.
pub const MAX_SERVICE_NAME: usize = 48;

/// How many bytes of a process's arguments a list contains.
pub const MAX_COMMAND: usize = 256;

/// The maximum number of processes in one reply to a list request.
pub const MAX_LISTED: usize = 64;

/// The maximum number of processes in a list entry that outlived a command.
pub const MAX_DESCENDANTS: usize = 16;

/// The longest name of a process in a list, in bytes: `TASK_COMM_LEN` of the
/// kernel, without its zero byte.
pub const MAX_COMMAND_NAME: usize = 15;

/// The maximum number of gaps in an output within one window of bytes. The agent
/// buffers at least [`MIN_OUTPUT_BUFFER`] bytes of an output, so there are never more.
pub const MAX_GAPS: usize = 1024;

/// The minimum number of bytes of an output that an agent buffers.
pub const MIN_OUTPUT_BUFFER: u32 = 16 * 1024;

/// The longest path, in bytes: the kernel's `PATH_MAX`.
pub const MAX_PATH: usize = 4096;

/// The longest message among the [records](crate::files::record) of a channel.
pub const MAX_RECORD: usize = 128 * 1024;

/// The largest file, in bytes, whose contents are sent inside its record.
pub const MAX_INLINE: usize = 32 * 1024;

/// The maximum size of an entry's packed extended attributes, in bytes.
pub const MAX_XATTRS: usize = 64 * 1024;

/// The maximum depth of a tree.
pub const MAX_DEPTH: usize = 256;

/// The maximum number of instructions of a
/// [log pattern](crate::service::log_pattern). It bounds the time for a byte of a
/// log.
pub const MAX_PATTERN_INSTRUCTIONS: usize = 1000;

/// The longest name of a host, in bytes: RFC 1035, without the dot at its end.
pub const MAX_HOST_NAME: usize = 253;

/// The maximum number of prefixes of addresses that are captured in addition to public
/// ones.
pub const MAX_CAPTURED_PREFIXES: usize = 256;

/// The maximum number of classes of a
/// [log pattern](crate::service::log_pattern).
pub const MAX_PATTERN_CLASSES: usize = 512;
