#![expect(
    deprecated,
    reason = "the newest protocol does without levels, but most clients set them"
)]

use std::sync::{Mutex, PoisonError};

use rmcp::model::LoggingLevel;

use crate::resources::Subscriptions;

/// What the server knows of one client.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) subscriptions: Subscriptions,
    log_level: Mutex<Option<LoggingLevel>>,
}

impl Client {
    /// Returns from which level on the client wants log messages, if it has said so.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        let mut log_level = self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *log_level = Some(level);
    }
}
