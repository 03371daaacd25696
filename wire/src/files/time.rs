use serde::{Deserialize, Serialize};

/// A time of the guest's wall clock, since 1970.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds, less than a billion.
    pub nanoseconds: u32,
}
