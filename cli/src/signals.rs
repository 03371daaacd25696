//! The signals that end us in order.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit_code::SIGNALLED;

/// From when this is made, SIGINT and SIGTERM come here.
pub(crate) struct Signals {
    interrupted: Signal,
    terminated: Signal,
}

impl Signals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one, and says which exit code it means.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupted.recv() => SIGNALLED + 2,
            _ = self.terminated.recv() => SIGNALLED + 15,
        }
    }
}
