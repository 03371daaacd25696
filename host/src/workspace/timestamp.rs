use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A time as files have it: in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Timestamp(u64);

impl Timestamp {
    pub(super) fn now() -> Self {
        Self::of(SystemTime::now())
    }

    pub(super) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let milliseconds = since.map_or(0, |since| since.as_millis());
        Self(u64::try_from(milliseconds).unwrap_or(u64::MAX))
    }

    pub(super) fn time(self) -> SystemTime {
        let since = Duration::from_millis(self.0);
        // A time that this system cannot have is as good as none.
        let time = SystemTime::UNIX_EPOCH.checked_add(since);
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}
