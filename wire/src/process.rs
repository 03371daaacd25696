//! What is said about processes.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{MAX_COMMAND, MAX_LEFT, MAX_LEFT_NAME, MAX_TAG},
    packed::Packed,
    rlimits::Rlimits,
};

/// Starts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start<'a> {
    /// A number that the host draws for each start. With it a host whose link
    /// was lost can find out whether the process was started, and take it up
    /// again: [`Resume`].
    pub ticket: u64,
    /// Names the process for people: unique among those that the agent knows.
    pub tag: &'a str,
    /// The program and its arguments; never empty. A program without a slash
    /// is looked up in `PATH`.
    #[serde(borrow)]
    pub argv: Packed<'a>,
    /// The environment, as `NAME=value`.
    #[serde(borrow)]
    pub env: Packed<'a>,
    /// Whether `HOME`, `LANG`, `PATH` and `USER` are set where `env` does not.
    pub default_env: bool,
    /// The working directory; `/` if empty.
    #[serde(with = "serde_bytes")]
    pub cwd: &'a [u8],
    /// Whether the working directory is made if it is not there.
    pub make_cwd: bool,
    /// `USER[:GROUP]`, names or numbers; root if empty.
    pub user: &'a str,
    /// The file mode creation mask, if not the agent's.
    pub umask: Option<u16>,
    /// Added to the niceness 0.
    pub nice: i8,
    /// Resource limits.
    #[serde(borrow)]
    pub rlimits: Rlimits<'a>,
    /// Where its standard input comes from.
    pub stdin: Stdin,
    /// Who decides when it ends.
    pub lifetime: Lifetime,
    /// It is ended after this time; 0: never.
    pub timeout_ms: u64,
    /// How many bytes of each output the agent keeps; 0: as it likes.
    pub keep: u32,
    /// Limits of its cgroup.
    pub limits: CgroupLimits,
}

/// Where a process's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// It is empty.
    Empty,
    /// From the `Stdin` channel of the stream that watches it, until its end.
    Stream,
}

/// Who decides when a process ends, and what happens when its outputs are not
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifetime {
    /// It ends when its stream is cancelled, or when its link was lost and
    /// nobody resumed it. It waits for its reader. When its end has been told
    /// and acknowledged, it is forgotten.
    Foreground,
    /// It runs until it ends by itself or is killed, whoever watches, and is
    /// known until it is forgotten. The oldest bytes of its outputs are
    /// dropped.
    Background,
}

/// What a process and its descendants may use together; 0: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// Bytes of memory. Who needs more is ended.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Thousandths of one processor.
    pub cpu_milli: u32,
}

/// Takes up a foreground process whose link was lost, as if the link had never
/// broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The number that the process was started with.
    pub ticket: u64,
    /// How far its standard output was read.
    pub stdout: Position,
    /// The same for standard error.
    pub stderr: Position,
}

/// Watches a process without deciding over its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach<'a> {
    /// Which one.
    #[serde(borrow)]
    pub process: Selector<'a>,
    /// From where on its standard output is wanted, if at all.
    pub stdout: Option<Position>,
    /// The same for standard error.
    pub stderr: Option<Position>,
    /// Whether this stream wants to feed its standard input. It takes it from
    /// the stream that did before.
    pub stdin: bool,
}

/// A place in an output, and how much may be sent from there before more
/// credit comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The offset of the first byte that is wanted, or [`Position::NOW`].
    pub offset: u64,
    /// How many bytes may be sent.
    pub window: u32,
}

impl Position {
    /// An offset that stands for what has not been written yet.
    pub const NOW: u64 = u64::MAX;
}

/// Names a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selector<'a> {
    /// By the number that the agent gave it, which is never used again.
    Id(u32),
    /// By the kernel's number; a running process goes before an ended one.
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
pub struct Entry<'a> {
    /// The number that the agent gave it.
    pub id: u32,
    /// The kernel's number.
    pub pid: u32,
    /// Its tag.
    pub tag: &'a str,
    /// The beginning of its arguments, at most
    /// [`MAX_COMMAND`](crate::limits::MAX_COMMAND) bytes.
    #[serde(borrow)]
    pub argv: Packed<'a>,
    /// Who it runs as.
    pub uid: u32,
    /// Who decides when it ends.
    pub lifetime: Lifetime,
    /// How long ago it was started, in milliseconds.
    pub age_ms: u64,
    /// Which bytes of its standard output are kept.
    pub stdout: Kept,
    /// The same for standard error.
    pub stderr: Kept,
    /// How it ended, if it did.
    pub exit: Option<Exit>,
}

impl Entry<'_> {
    /// Whether the texts keep their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.tag.len() <= MAX_TAG && self.argv.byte_len() <= MAX_COMMAND
    }
}

/// A process in a list, with those that it left behind when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree<'a> {
    /// What is known of the process itself.
    #[serde(borrow)]
    pub entry: Entry<'a>,
    /// The kernel's numbers of the processes that it left behind, four bytes
    /// each, the lowest first: at most [`MAX_LEFT`] numbers.
    #[serde(with = "serde_bytes")]
    pub pids: &'a [u8],
    /// What they call themselves, in the same order, at most
    /// [`MAX_LEFT_NAME`] bytes each.
    #[serde(borrow)]
    pub names: Packed<'a>,
    /// Whether it left more than these.
    pub more: bool,
}

impl<'a> Tree<'a> {
    /// The processes that it left behind: the kernel's numbers and their names.
    pub fn left(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let (pids, _) = self.pids.as_chunks();
        let names = self.names.iter().map(core::ffi::CStr::to_bytes);
        pids.iter().copied().map(u32::from_le_bytes).zip(names)
    }

    /// Whether the lists keep their limits.
    pub(crate) fn is_valid(&self) -> bool {
        let count = self.names.iter().count();
        let mut names = self.names.iter();
        self.entry.is_valid()
            && count <= MAX_LEFT
            && count.checked_mul(size_of::<u32>()) == Some(self.pids.len())
            && names.all(|name| name.count_bytes() <= MAX_LEFT_NAME)
    }
}

/// Which bytes of an output the agent still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The offset of the oldest byte.
    pub start: u64,
    /// The offset behind the newest: how many there ever were.
    pub end: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Why it ended.
    pub cause: Cause,
    /// Processor time in user mode, in microseconds.
    pub user_us: u64,
    /// Processor time in kernel mode, in microseconds.
    pub system_us: u64,
    /// The most memory it had resident, in KiB.
    pub peak_rss_kib: u64,
    /// From start to end by the guest's monotonic clock, in microseconds.
    pub wall_us: u64,
    /// How many bytes it wrote to standard output. A reader that has fewer has
    /// not seen everything.
    pub stdout_bytes: u64,
    /// The same for standard error.
    pub stderr_bytes: u64,
    /// Whether some descendant still held an output open, so that the agent
    /// stopped reading before the end.
    pub outputs_cut: bool,
    /// How many processes of its cgroup were ended for want of memory.
    pub oom_kills: u32,
    /// Whether no process of its cgroup was left when this was sent. None: the
    /// agent runs without cgroups and cannot tell.
    pub tree_ended: Option<bool>,
}

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// It exited with this code.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
    /// Its time was over, and the agent ended it.
    Timeout,
    /// It or a descendant needed more memory than there was, and the kernel
    /// ended it.
    OutOfMemory,
    /// A host asked for its end.
    Killed,
}
