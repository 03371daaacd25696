use std::ops::{AddAssign, Sub};

/// How many bytes were received and sent on the links of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkTraffic {
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl AddAssign for LinkTraffic {
    fn add_assign(&mut self, other: Self) {
        self.received = self.received.saturating_add(other.received);
        self.sent = self.sent.saturating_add(other.sent);
    }
}

impl Sub for LinkTraffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            received: self.received.saturating_sub(other.received),
            sent: self.sent.saturating_sub(other.sent),
        }
    }
}
