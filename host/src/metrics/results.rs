use serde::{Deserialize, Serialize};

use super::{MetricsTier, Sample};

/// The samples of one tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// The tier.
    pub tier: MetricsTier,
    /// Its samples, the oldest first. The last one may be of a time that still goes on.
    /// Times in which no sample was taken are missing, for example if the program that owns
    /// the VM was stopped.
    pub samples: Vec<Sample>,
}

/// The samples of all tiers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AllMetrics {
    /// The last 10 minutes.
    pub ten_minutes: Metrics,
    /// The last 2 hours.
    pub two_hours: Metrics,
    /// The last 24 hours.
    pub one_day: Metrics,
}

impl AllMetrics {
    /// Returns the samples of a tier.
    pub fn tier(&self, tier: MetricsTier) -> &Metrics {
        match tier {
            MetricsTier::TenMinutes => &self.ten_minutes,
            MetricsTier::TwoHours => &self.two_hours,
            MetricsTier::OneDay => &self.one_day,
        }
    }
}
