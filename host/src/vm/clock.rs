//! The guest's wall clock, which the host sets.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vmcell_wire::{Outcome, Request};

use crate::session::{OpenError, Session, Stream, StreamEvent};

/// How long the guest may take to set its clock after a pause.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the clock of a guest that has just booted. The time in its boot file may
/// be seconds old.
pub(super) async fn set(session: &Session) {
    if let Some(request) = request() {
        wait(session.open(&request)).await;
    }
}

/// Sets the clock of a guest that has just been resumed, before the requests that were
/// held back meanwhile.
pub(super) async fn set_after_pause(session: &Session) {
    if let Some(request) = request() {
        let setting = wait(session.open_first(&request));
        // The VM runs in any case.
        let _ = tokio::time::timeout(TIMEOUT, setting).await;
    }
}

/// Returns the request with the time of the host; `None` if that is before 1970.
fn request() -> Option<Request<'static>> {
    let wall_time_ns = wall_time_ns()?;
    Some(Request::SetClock { wall_time_ns })
}

/// Returns the time of the host in nanoseconds since 1970; `None` if it is before.
pub(super) fn wall_time_ns() -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

async fn wait(opened: Result<Stream, OpenError>) {
    // An older agent cannot do this, and a guest without a VM has the host's clock.
    let Ok(mut stream) = opened else {
        return;
    };
    match stream.next().await {
        Ok(StreamEvent::Closed(closing)) if closing.outcome() == Outcome::Done => {}
        other => tracing::warn!(?other, "the guest's clock could not be set"),
    }
}
