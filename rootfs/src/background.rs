use std::{future::pending, panic::resume_unwind};

use tokio::task::spawn_blocking;

use crate::{Cache, CachedImage, Error, Recipe};

/// Returns the image in the user's cache, and builds it on a thread for blocking work
/// if it is not there.
pub(crate) async fn cached(recipe: impl Recipe + Send + 'static) -> Result<CachedImage, Error> {
    match spawn_blocking(move || Cache::user()?.image(&recipe)).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down: nobody asks again.
            Err(_) => pending().await,
        },
    }
}
