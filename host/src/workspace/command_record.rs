use std::time::SystemTime;

/// A command that ran in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandRecord {
    /// Its number; the first one of a workspace has 1.
    pub number: u64,
    /// Its program and arguments. Bytes that are not UTF-8 are replaced.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: String,
    /// The user that it ran as, if one was set.
    pub user: Option<String>,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: Option<SystemTime>,
    /// What has become of it.
    pub state: CommandState,
    /// Its standard output.
    pub stdout: RecordedOutput,
    /// Its standard error.
    pub stderr: RecordedOutput,
}

/// What has become of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandState {
    /// It runs.
    Running,
    /// It ended.
    Ended {
        /// Why: see [`Cause::name`](crate::Cause::name).
        cause: String,
        /// Its exit code, if it exited.
        code: Option<u8>,
    },
    /// It could not be run, or its end is not known: why.
    Failed(String),
    /// The program that ran it has ended before the command did.
    Interrupted,
}

/// The output of a command that was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedOutput {
    /// Its last bytes, up to [`MAX`](Self::MAX). Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// How many bytes it had in all.
    pub bytes: u64,
    /// The SHA-256 digest of what the caller got of it, in hexadecimal digits.
    pub sha256: String,
}

impl RecordedOutput {
    /// How many bytes of each output are kept.
    pub const MAX: usize = 64 * 1024;

    /// Returns whether it is not whole.
    pub fn is_cut(&self) -> bool {
        self.bytes > Self::MAX as u64
    }
}
