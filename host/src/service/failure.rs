use std::fmt;

use super::{FailureReason, ServicePhase, ServiceStatus};

/// A service that is finished instead of ready.
///
/// The message of this error includes its last log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceFailure {
    /// Its status: why it failed, and how its last run ended.
    pub status: ServiceStatus,
    /// Its last log lines, made safe to print: at most
    /// [`MAX_LINES`](Self::MAX_LINES), and the last
    /// [`MAX_BYTES`](Self::MAX_BYTES) of them.
    pub log: String,
}

impl ServiceFailure {
    /// The most log lines that are included.
    pub const MAX_LINES: u32 = 20;

    /// The most bytes of the log that are included.
    pub const MAX_BYTES: usize = 8 * 1024;

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.status.name
    }

    /// Returns why it failed; `None` if it was stopped or exited with code 0.
    pub fn reason(&self) -> Option<&FailureReason> {
        match &self.status.phase {
            ServicePhase::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for ServiceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service {:?} is not ready: ", self.name())?;
        match self.reason() {
            Some(reason) => write!(f, "{reason}")?,
            None => f.write_str("it has stopped")?,
        }
        let died = matches!(self.reason(), None | Some(FailureReason::Died));
        if let Some(exit) = self.status.last_exit.filter(|_| died) {
            write!(f, " ({})", exit.cause)?;
        }
        match self.log.trim_end() {
            "" => f.write_str("; its log is empty"),
            log => write!(f, "; its log ends with:\n{log}"),
        }
    }
}

impl std::error::Error for ServiceFailure {}
