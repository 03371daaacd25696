//! Messages about processes.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{MAX_COMMAND, MAX_COMMAND_NAME, MAX_DESCENDANTS, MAX_TAG},
    packed::PackedStrings,
    rlimits::Rlimits,
};

/// The parameters of starting a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start<'a> {
    /// A random number that the host chooses for each start. After losing its
    /// link, a host uses it to find out whether the process was started, and to
    /// [resume](Resume) it.
    pub ticket: u64,
    /// The user's name for the process: unique among those that the agent knows,
    /// and 1 to [`MAX_TAG`] of `A-Z a-z 0-9 . _ -`.
    pub tag: &'a str,
    /// The program and its arguments; not empty. A program without a slash is
    /// looked up in `PATH`.
    #[serde(borrow)]
    pub argv: PackedStrings<'a>,
    /// The environment, as `NAME=value`. With the capability
    /// [`SECRETS`](crate::Capabilities::SECRETS) also
    /// [secret variables](crate::SecretVariable).
    #[serde(borrow)]
    pub env: PackedStrings<'a>,
    /// Whether `HOME`, `LANG`, `PATH` and `USER` are set where `env` does not.
    pub default_env: bool,
    /// The working directory; `/` if empty.
    #[serde(with = "serde_bytes")]
    pub cwd: &'a [u8],
    /// Whether a missing working directory is created.
    pub make_cwd: bool,
    /// `USER[:GROUP]`, names or numbers; root if empty.
    pub user: &'a str,
    /// The file mode creation mask; `None` is the agent's.
    pub umask: Option<u16>,
    /// The nice value.
    pub nice: i8,
    /// Resource limits.
    #[serde(borrow)]
    pub rlimits: Rlimits<'a>,
    /// The source of its standard input.
    pub stdin: Stdin,
    /// Whether it runs in the foreground or in the background.
    pub mode: ProcessMode,
    /// The time after which it is killed; 0 is never.
    pub timeout_ms: u64,
    /// How many bytes of each output the agent buffers; 0 is the agent's default.
    pub keep: u32,
    /// The limits of its cgroup.
    pub limits: CgroupLimits,
}

/// The source of a process's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// It is empty.
    Empty,
    /// The `Stdin` channel of the attached stream, until its end.
    Stream,
}

/// What ends a process, and what happens when its outputs are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessMode {
    /// It is killed when its stream is cancelled, or when its link was lost and
    /// no host resumed it. It blocks on a slow reader. The agent forgets it once
    /// the host has acknowledged its end.
    Foreground,
    /// It runs until it ends by itself or is killed, independent of attached
    /// streams, and remains listed until it is forgotten. The oldest bytes of its
    /// outputs are dropped.
    Background,
}

/// The limits of a process and its descendants together; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// Bytes of memory. Beyond it the kernel kills processes.
    pub memory: u64,
    /// The number of processes and threads.
    pub pids: u32,
    /// Processor time, in thousandths of one processor.
    pub cpu_milli: u32,
}

/// Resumes a foreground process whose link was lost, without loss of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The ticket with which the process was started.
    pub ticket: u64,
    /// The position up to which its standard output was received.
    pub stdout: Position,
    /// The same for standard error.
    pub stderr: Position,
}

/// Attaches to a process. Its lifetime does not depend on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach<'a> {
    /// The process.
    #[serde(borrow)]
    pub process: Selector<'a>,
    /// The position from which to send its standard output; `None` sends none.
    pub stdout: Option<Position>,
    /// The same for standard error.
    pub stderr: Option<Position>,
    /// Whether this stream provides its standard input, instead of the stream
    /// that did before.
    pub stdin: bool,
}

/// An offset in a stream of bytes, and the initial credit from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The offset of the first byte, or [`Position::NOW`].
    pub offset: u64,
    /// How many bytes may be sent before more credit is granted.
    pub window: u32,
}

impl Position {
    /// The offset that means the current end of the output.
    pub const NOW: u64 = u64::MAX;

    pub(crate) const fn with_window(self, window: u32) -> Self {
        Self { window, ..self }
    }
}

/// Identifies a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selector<'a> {
    /// By the agent's id, which is never reused.
    Id(u32),
    /// By the kernel's pid; a running process takes precedence over an ended one.
    Pid(u32),
    /// By its tag.
    Tag(&'a str),
}

/// One of a process's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A process in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEntry<'a> {
    /// The agent's id of the process.
    pub id: u32,
    /// The kernel's pid.
    pub pid: u32,
    /// Its tag.
    pub tag: &'a str,
    /// The beginning of its arguments, at most
    /// [`MAX_COMMAND`](crate::limits::MAX_COMMAND) bytes.
    #[serde(borrow)]
    pub argv: PackedStrings<'a>,
    /// The user that it runs as.
    pub uid: u32,
    /// Whether it runs in the foreground or in the background.
    pub mode: ProcessMode,
    /// The time since its start, in milliseconds.
    pub age_ms: u64,
    /// The bytes of its standard output that are buffered.
    pub stdout: BufferedRange,
    /// The same for standard error.
    pub stderr: BufferedRange,
    /// How it ended; `None` while it runs.
    pub exit: Option<Exit>,
}

impl ProcessEntry<'_> {
    /// Returns whether all texts are within their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.tag.len() <= MAX_TAG && self.argv.byte_len() <= MAX_COMMAND
    }
}

/// A process in a list, with its descendants that outlived it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessTree<'a> {
    /// The process itself.
    #[serde(borrow)]
    pub entry: ProcessEntry<'a>,
    /// The pids of the descendants, four bytes each, little-endian: at most
    /// [`MAX_DESCENDANTS`] of them.
    #[serde(with = "serde_bytes")]
    pub pids: &'a [u8],
    /// Their command names (`comm`), in the same order, at most
    /// [`MAX_COMMAND_NAME`] bytes each.
    #[serde(borrow)]
    pub names: PackedStrings<'a>,
    /// Whether there are more than these.
    pub more: bool,
}

impl<'a> ProcessTree<'a> {
    /// Iterates over the descendants that outlived it: pids and command names.
    pub fn descendants(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let (pids, _) = self.pids.as_chunks();
        let names = self.names.iter().map(core::ffi::CStr::to_bytes);
        pids.iter().copied().map(u32::from_le_bytes).zip(names)
    }

    /// Returns whether the lists are within their limits.
    pub(crate) fn is_valid(&self) -> bool {
        let count = self.names.iter().count();
        let mut names = self.names.iter();
        self.entry.is_valid()
            && count <= MAX_DESCENDANTS
            && count.checked_mul(size_of::<u32>()) == Some(self.pids.len())
            && names.all(|name| name.count_bytes() <= MAX_COMMAND_NAME)
    }
}

/// The range of an output that the agent has buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferedRange {
    /// The offset of the oldest byte.
    pub start: u64,
    /// The offset after the newest byte: the total number of bytes written.
    pub end: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Why it ended.
    pub cause: ExitCause,
    /// Processor time in user mode, in microseconds.
    pub user_us: u64,
    /// Processor time in kernel mode, in microseconds.
    pub system_us: u64,
    /// Its peak resident set size, in KiB.
    pub peak_rss_kib: u64,
    /// From start to end by the guest's monotonic clock, in microseconds.
    pub wall_us: u64,
    /// How many bytes it wrote to standard output. A reader that received fewer
    /// has missed some.
    pub stdout_bytes: u64,
    /// The same for standard error.
    pub stderr_bytes: u64,
    /// Whether a descendant still held an output open, so that the agent stopped
    /// reading before end of file.
    pub outputs_cut: bool,
    /// How many processes of its cgroup the kernel's OOM killer killed.
    pub oom_kills: u32,
    /// Whether its cgroup had no processes left when this was sent. `None` if the
    /// agent runs without cgroups.
    pub tree_ended: Option<bool>,
}

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ExitCause {
    /// It exited with this code.
    Code(u8),
    /// This signal terminated it.
    Signal(u8),
    /// The agent killed it after its timeout.
    Timeout,
    /// The OOM killer killed it, because it or a descendant exceeded the
    /// available memory.
    OutOfMemory,
    /// The agent killed it at the request of a host.
    Killed,
}
