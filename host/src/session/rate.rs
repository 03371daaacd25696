use std::{
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// The rate of one direction of the links of a session. Most have none, which costs a look.
#[derive(Debug, Default)]
pub(super) struct LinkRate(OnceLock<RateLimit>);

/// A limit of bytes per second.
#[derive(Debug)]
struct RateLimit {
    bytes_per_second: u64,
    /// When everything that has passed would have passed, at this rate and without a burst.
    paid_until: Mutex<Instant>,
    /// Whether it does not hold any more.
    is_lifted: AtomicBool,
}

/// The bytes of this time pass at once after a pause.
const BURST: Duration = Duration::from_millis(250);

/// The most bytes that pass at once, so that nobody waits long for what is behind them.
pub(super) const MAX_PIECE: usize = 16 * 1024;

impl LinkRate {
    /// Sets the rate, once.
    pub(super) fn set(&self, bytes_per_second: u64) {
        self.0.get_or_init(|| RateLimit {
            bytes_per_second: bytes_per_second.max(1),
            paid_until: Mutex::new(Instant::now()),
            is_lifted: AtomicBool::new(false),
        });
    }

    /// Lets everything pass from now on.
    pub(super) fn lift(&self) {
        if let Some(limit) = self.0.get() {
            limit.is_lifted.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether there is a rate.
    pub(super) fn is_limited(&self) -> bool {
        self.limit().is_some()
    }

    /// Counts bytes that have passed.
    pub(super) fn count(&self, bytes: usize) {
        if let Some(limit) = self.limit() {
            let mut paid_until = limit
                .paid_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *paid_until = next(*paid_until, Instant::now(), bytes, limit.bytes_per_second);
        }
    }

    /// Returns whether bytes may pass now.
    pub(super) fn is_ready(&self) -> bool {
        self.waits_until().is_none()
    }

    /// Waits until bytes may pass.
    ///
    /// Cancel safe.
    pub(super) async fn ready(&self) {
        if let Some(instant) = self.waits_until() {
            sleep_until(instant).await;
        }
    }

    fn waits_until(&self) -> Option<Instant> {
        let limit = self.limit()?;
        let paid_until = limit.paid_until.lock();
        let paid_until = *paid_until.unwrap_or_else(PoisonError::into_inner);
        (paid_until > Instant::now()).then_some(paid_until)
    }

    fn limit(&self) -> Option<&RateLimit> {
        let limit = self.0.get()?;
        (!limit.is_lifted.load(Ordering::Relaxed)).then_some(limit)
    }
}

/// Returns until when the rate is used up after these bytes.
fn next(paid_until: Instant, now: Instant, bytes: usize, bytes_per_second: u64) -> Instant {
    // What was not used is forgotten, but for a burst.
    let earliest = now.checked_sub(BURST).unwrap_or(now);
    let nanos = (bytes as u128 * 1_000_000_000).div_ceil(bytes_per_second.into());
    let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    paid_until.max(earliest) + time
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whenever something passes, what has passed until then is at most the rate and a burst.
        #[test]
        fn no_more_passes_than_the_rate_and_a_burst(
            rate in 1_u64..1 << 40,
            pieces in prop::collection::vec((0_u64..2_000, 0..MAX_PIECE), 1..100),
        ) {
            let start = Instant::now() + Duration::from_secs(3600);
            let (mut now, mut paid_until, mut passed) = (start, start, 0_u128);
            for (pause_ms, bytes) in pieces {
                now += Duration::from_millis(pause_ms);
                now = now.max(paid_until);
                let elapsed = now - start + BURST;
                let allowed = elapsed.as_nanos() * u128::from(rate) / 1_000_000_000;
                prop_assert!(passed <= allowed + 1, "{passed} {allowed}");
                passed += bytes as u128;
                paid_until = next(paid_until, now, bytes, rate);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn small_exchanges_do_not_wait_and_a_flood_does() {
        let rate = LinkRate::default();
        rate.set(1 << 20);
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(10)).await;
        for _ in 0..200 {
            assert!(rate.is_ready());
            rate.count(1024);
        }
        let flood = Instant::now();
        for _ in 0..128 {
            rate.ready().await;
            rate.count(MAX_PIECE);
        }
        // Two MiB, but for the burst and the last piece.
        assert!(flood.elapsed() >= Duration::from_millis(1700));
        assert!(flood.elapsed() < Duration::from_millis(2300));
        assert!(start.elapsed() < Duration::from_secs(13));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_and_when_it_is_lifted_everything_passes() {
        let rate = LinkRate::default();
        rate.count(usize::MAX);
        assert!(rate.is_ready() && !rate.is_limited());
        rate.set(1);
        rate.count(1000);
        assert!(!rate.is_ready() && rate.is_limited());
        rate.lift();
        assert!(rate.is_ready() && !rate.is_limited());
    }
}
