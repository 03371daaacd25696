//! The runtime that the library needs.

use anyhow::Context;

pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let outcome = runtime.block_on(future);
    // The thread that reads standard input may wait for a key forever.
    runtime.shutdown_background();
    outcome
}
