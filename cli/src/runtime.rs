//! The async runtime that the library needs.

use std::time::Duration;

use anyhow::Context;

/// How long blocking threads may take to clean up at exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let outcome = runtime.block_on(future);
    // A thread that was writing a file removes the incomplete file.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}
