use serde::{Deserialize, Serialize};

use crate::packed::Packed;

/// Runs a program in the foreground: it ends when its stream is cancelled or
/// its link is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec<'a> {
    /// The program and its arguments; never empty. A program without a slash
    /// is looked up in the `PATH` of `env`.
    #[serde(borrow)]
    pub argv: Packed<'a>,
    /// The whole environment, as `NAME=value`.
    #[serde(borrow)]
    pub env: Packed<'a>,
    /// The working directory; `/` if empty.
    pub cwd: &'a [u8],
    /// Where its standard input comes from.
    pub stdin: Stdin,
}

/// Where a process's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// It is empty.
    Empty,
    /// From the stream's `Stdin` channel, until its end.
    Stream,
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
}
