use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use tokio::time::{Instant, interval_at};

/// How often the client is told.
const INTERVAL: Duration = Duration::from_secs(1);

/// What a call is doing, of which the client is told each second if it wants to know.
#[derive(Debug)]
pub(crate) struct Progress {
    began: Instant,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    doing: String,
    /// How long it takes at most.
    limit: Option<Duration>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            now: Mutex::new(Now {
                doing: "running".to_owned(),
                limit: None,
            }),
        }
    }

    /// Sets what is being done.
    pub(crate) fn set(&self, doing: impl Into<String>) {
        self.lock().doing = doing.into();
    }

    /// Sets that files are copied, and how much was so far.
    pub(crate) fn set_copied(&self, entries: u64, bytes: u64) {
        self.set(format!("copied {entries} entries, {bytes} bytes"));
    }

    /// Sets how long what is done from now on takes at most.
    pub(crate) fn set_limit(&self, limit: Duration) {
        self.lock().limit = Some(self.began.elapsed() + limit);
    }

    /// Tells a client until this is dropped, if it has sent a token.
    pub(crate) async fn report(&self, peer: &Peer<RoleServer>, token: Option<ProgressToken>) {
        let Some(token) = token else {
            return std::future::pending().await;
        };
        let mut ticks = interval_at(self.began + INTERVAL, INTERVAL);
        loop {
            ticks.tick().await;
            let elapsed = self.began.elapsed().as_secs_f64();
            let mut report = ProgressNotificationParam::new(token.clone(), elapsed);
            {
                let now = self.lock();
                report.total = now.limit.map(|limit| limit.as_secs_f64().max(elapsed));
                report.message = Some(format!("{} ({elapsed:.0} s)", now.doing));
            }
            // Who is gone does not want to know.
            let _ = peer.notify_progress(report).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
