use std::io;

use crate::error::Error;

/// Runs what may block on a thread for it.
pub(crate) async fn on_thread<T: Send + 'static>(
    doing: &'static str,
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(run).await;
    // Fails only if the runtime shuts down, or if it panics.
    done.unwrap_or_else(|error| Err(Error::host(doing)(io::Error::other(error))))
}
