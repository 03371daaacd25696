use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{
    AllMetrics, Metrics, MetricsTier, Sample,
    reading::Reading,
    ring::{Ring, sample_of},
};

/// The metrics of a VM that this program owns. The sampler adds, handles and clients read.
#[derive(Debug)]
pub(crate) struct MetricsHistory {
    tiers: Mutex<Tiers>,
    latest: watch::Receiver<Option<Sample>>,
}

/// Tells those who wait for a sample. When it is dropped, there will be no more.
pub(super) type LatestSender = watch::Sender<Option<Sample>>;

#[derive(Debug)]
struct Tiers {
    ten_minutes: Ring,
    two_hours: Ring,
    one_day: Ring,
}

impl MetricsHistory {
    /// Creates one that is empty, and what its sampler needs.
    pub(super) fn new() -> (Self, LatestSender) {
        let (sender, latest) = watch::channel(None);
        let tiers = Mutex::new(Tiers {
            ten_minutes: Ring::new(MetricsTier::TenMinutes),
            two_hours: Ring::new(MetricsTier::TwoHours),
            one_day: Ring::new(MetricsTier::OneDay),
        });
        (Self { tiers, latest }, sender)
    }

    pub(super) fn add(&self, reading: &Reading, latest: &LatestSender) {
        {
            let mut tiers = self.lock();
            tiers.ten_minutes.add(reading);
            tiers.two_hours.add(reading);
            tiers.one_day.add(reading);
        }
        latest.send_replace(Some(sample_of(reading)));
    }

    /// Returns the samples of a tier.
    pub(crate) fn metrics(&self, tier: MetricsTier) -> Metrics {
        let tiers = self.lock();
        let ring = match tier {
            MetricsTier::TenMinutes => &tiers.ten_minutes,
            MetricsTier::TwoHours => &tiers.two_hours,
            MetricsTier::OneDay => &tiers.one_day,
        };
        let samples = ring.samples();
        Metrics { tier, samples }
    }

    /// Removes and returns all samples.
    pub(crate) fn flush(&self) -> AllMetrics {
        let mut tiers = self.lock();
        let take = |tier, ring: &mut Ring| Metrics {
            tier,
            samples: ring.take(),
        };
        AllMetrics {
            ten_minutes: take(MetricsTier::TenMinutes, &mut tiers.ten_minutes),
            two_hours: take(MetricsTier::TwoHours, &mut tiers.two_hours),
            one_day: take(MetricsTier::OneDay, &mut tiers.one_day),
        }
    }

    /// Waits for a sample that is taken from now on. `None` if there will be none, because
    /// the VM has ended.
    ///
    /// Cancel safe.
    pub(crate) async fn next_sample(&self) -> Option<Sample> {
        let mut latest = self.latest.clone();
        latest.mark_unchanged();
        latest.changed().await.ok()?;
        *latest.borrow()
    }

    fn lock(&self) -> MutexGuard<'_, Tiers> {
        self.tiers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
