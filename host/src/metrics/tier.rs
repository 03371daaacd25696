use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// How far back metrics go, and how fine they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MetricsTier {
    /// The last 10 minutes, by the second.
    #[default]
    #[serde(rename = "10m")]
    TenMinutes,
    /// The last 2 hours, by 10 seconds.
    #[serde(rename = "2h")]
    TwoHours,
    /// The last 24 hours, by 2 minutes.
    #[serde(rename = "24h")]
    OneDay,
}

impl MetricsTier {
    /// All tiers, the finest first.
    pub const ALL: [Self; 3] = [Self::TenMinutes, Self::TwoHours, Self::OneDay];

    /// Returns how far back it goes.
    pub const fn span(self) -> Duration {
        Duration::from_secs(match self {
            Self::TenMinutes => 10 * 60,
            Self::TwoHours => 2 * 60 * 60,
            Self::OneDay => 24 * 60 * 60,
        })
    }

    /// Returns the time that one sample stands for.
    pub const fn resolution(self) -> Duration {
        Duration::from_secs(match self {
            Self::TenMinutes => 1,
            Self::TwoHours => 10,
            Self::OneDay => 2 * 60,
        })
    }

    /// Returns its stable name: `10m`, `2h` or `24h`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TenMinutes => "10m",
            Self::TwoHours => "2h",
            Self::OneDay => "24h",
        }
    }
}

impl fmt::Display for MetricsTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a text that is not the [name](MetricsTier::name) of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 10m, 2h or 24h")]
pub struct UnknownTier;

impl FromStr for MetricsTier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        let mut all = Self::ALL.into_iter();
        all.find(|tier| tier.name() == text).ok_or(UnknownTier)
    }
}
