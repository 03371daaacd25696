use std::fmt;

use super::{ServicePhase, ServiceStatus, ServiceTrouble};

/// A service that is over, though it was to be ready.
///
/// The text of this error has its last log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceFailure {
    /// How it is: why it failed, and how its last run ended.
    pub status: ServiceStatus,
    /// Its last log lines, made safe to print: at most
    /// [`MAX_LINES`](Self::MAX_LINES), and the last
    /// [`MAX_BYTES`](Self::MAX_BYTES) of them.
    pub log: String,
}

impl ServiceFailure {
    /// How many log lines there are at most.
    pub const MAX_LINES: u32 = 20;

    /// How many bytes of the log there are at most.
    pub const MAX_BYTES: usize = 8 * 1024;

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.status.name
    }

    /// Why it has failed. None: it was stopped, or came to its end with code 0.
    pub fn trouble(&self) -> Option<&ServiceTrouble> {
        match &self.status.phase {
            ServicePhase::Failed(trouble) => Some(trouble),
            _ => None,
        }
    }
}

impl fmt::Display for ServiceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service {:?} is not ready: ", self.name())?;
        match self.trouble() {
            Some(trouble) => write!(f, "{trouble}")?,
            None => f.write_str("it has stopped")?,
        }
        let died = matches!(self.trouble(), None | Some(ServiceTrouble::Died));
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
