use std::{pin::pin, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// Whether the VM is paused, and for how long it was.
///
/// The guest cannot answer meanwhile, so the time of a pause does not count towards
/// any timeout.
#[derive(Debug, Default)]
pub(crate) struct Pauses(watch::Sender<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// When the pause began that is not over.
    since: Option<Instant>,
    /// How long all pauses before were.
    before: Duration,
}

impl Pauses {
    /// Records that a pause begins.
    pub(crate) fn begin(&self) {
        self.0.send_modify(|state| {
            state.since.get_or_insert_with(Instant::now);
        });
    }

    /// Records that the pause is over.
    pub(crate) fn end(&self) {
        self.0.send_modify(|state| {
            *state = State {
                since: None,
                before: state.total(),
            };
        });
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.0.borrow().since.is_some()
    }

    /// Returns how long all pauses were together.
    pub(crate) fn total(&self) -> Duration {
        self.0.borrow().total()
    }

    /// Waits until a pause has begun or is over. Returns whether it has begun.
    ///
    /// Cancel safe.
    pub(crate) async fn changed(&self, was_paused: bool) -> bool {
        let is_other = |state: &State| state.since.is_some() != was_paused;
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(is_other).await;
        !was_paused
    }

    /// Waits until the VM runs.
    ///
    /// Cancel safe.
    pub(crate) async fn running(&self) {
        self.changed(true).await;
    }

    /// Runs a future for this long at most, not counting pauses. Returns `None` if it
    /// takes longer.
    pub(crate) async fn timeout<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        let (started, before) = (Instant::now(), self.total());
        loop {
            let pauses = self.total().saturating_sub(before);
            let left = limit.saturating_sub(started.elapsed().saturating_sub(pauses));
            if left.is_zero() {
                return None;
            }
            let timer = async {
                self.running().await;
                sleep(left).await;
            };
            tokio::select! {
                biased;
                value = &mut future => return Some(value),
                () = timer => {}
            }
        }
    }
}

impl State {
    fn total(&self) -> Duration {
        let current = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.before + current
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_pause_does_not_count() {
        let pauses = Pauses::default();
        let started = Instant::now();
        let waiting = pauses.timeout(Duration::from_secs(10), pending::<()>());
        let pausing = async {
            sleep(Duration::from_secs(4)).await;
            pauses.begin();
            assert!(pauses.is_paused());
            sleep(Duration::from_secs(100)).await;
            pauses.end();
        };
        let (waited, ()) = tokio::join!(waiting, pausing);
        assert_eq!(waited, None);
        assert_eq!(started.elapsed().as_secs(), 110);
        assert_eq!(pauses.total().as_secs(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_in_time_or_in_a_pause_is_returned() {
        let pauses = Pauses::default();
        let limit = Duration::from_secs(10);
        let in_time = pauses.timeout(limit, sleep(Duration::from_secs(9)));
        assert_eq!(in_time.await, Some(()));
        assert_eq!(pauses.timeout(limit, sleep(limit * 2)).await, None);
        pauses.begin();
        assert_eq!(pauses.timeout(limit, sleep(limit * 2)).await, Some(()));
    }
}
