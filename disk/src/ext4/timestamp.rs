/// A time, relative to the start of 1970 (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, less than 1,000,000,000.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// Decodes the two fields of an inode. The second one has two more bits of
    /// the seconds, which extends the range to the year 2446, and the
    /// nanoseconds.
    pub(super) fn of_inode(seconds: u32, extra: u32) -> Self {
        let seconds = i64::from(seconds.cast_signed());
        Self {
            seconds: seconds.saturating_add(i64::from(extra & 3) << 32),
            nanoseconds: (extra >> 2).min(999_999_999),
        }
    }
}
