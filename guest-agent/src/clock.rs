use rustix::{
    io::Errno,
    time::{ClockId, Timespec, clock_gettime, clock_settime},
};

/// Sets the wall clock to this number of nanoseconds since 1970.
pub(crate) fn set_wall_clock(nanoseconds: u64) -> Result<(), Errno> {
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    let rest = nanoseconds.rem_euclid(1_000_000_000);
    let time = Timespec {
        tv_sec: i64::try_from(seconds).map_err(|_| Errno::INVAL)?,
        tv_nsec: i64::try_from(rest).map_err(|_| Errno::INVAL)?,
    };
    clock_settime(ClockId::Realtime, time)
}

/// A moment of the guest's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let rest = u64::try_from(now.tv_nsec).unwrap_or(0);
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
    }

    pub(crate) fn after_ms(self, milliseconds: u64) -> Self {
        self.after_ns(milliseconds.saturating_mul(1_000_000))
    }

    pub(crate) fn after_ns(self, nanoseconds: u64) -> Self {
        Self(self.0.saturating_add(nanoseconds))
    }

    pub(crate) fn since_boot_ns(self) -> u64 {
        self.0
    }

    pub(crate) fn nanoseconds_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) fn microseconds_since(self, earlier: Self) -> u64 {
        self.nanoseconds_since(earlier).div_euclid(1000)
    }
}
