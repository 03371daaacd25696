//! Flow control: who may send how much.
//!
//! ```text
//! sender                                receiver
//! SendWindow   -- data: take(n) ----->  ReceiveWindow::arrived(n)
//!              <-- Credit(n) ---------  ReceiveWindow::consumed(n)
//!              granted(n)
//! ```
//!
//! Both windows begin at the size that the receiver named in its hello. The
//! receiver grants credit again as its own reader consumes, half a window at a
//! time, so a slow reader stops the sender and credit frames stay rare.

use crate::{error::WireError, frame::Channel, limits::MAX_WINDOW};

/// What a sender may still send on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow {
    channel: Channel,
    available: u32,
}

impl SendWindow {
    /// A window of the size that the receiver named.
    pub const fn new(channel: Channel, size: u32) -> Self {
        Self {
            channel,
            available: size,
        }
    }

    /// How many bytes may be sent now.
    pub const fn available(&self) -> u32 {
        self.available
    }

    /// Takes up to `wanted` bytes of credit and says how many it took.
    pub fn take(&mut self, wanted: u32) -> u32 {
        let taken = wanted.min(self.available);
        self.available = self.available.saturating_sub(taken);
        taken
    }

    /// The receiver granted more.
    ///
    /// # Errors
    /// [`WireError::CreditOverflow`] if more would be outstanding than any
    /// receiver may grant.
    pub fn granted(&mut self, bytes: u32) -> Result<(), WireError> {
        self.available = self
            .available
            .checked_add(bytes)
            .filter(|available| *available <= MAX_WINDOW)
            .ok_or(WireError::CreditOverflow(self.channel))?;
        Ok(())
    }
}

/// What a receiver must still be ready to take on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    channel: Channel,
    size: u32,
    /// Granted, and not yet arrived.
    expected: u32,
    /// Consumed, and not yet granted again.
    returnable: u32,
}

impl ReceiveWindow {
    /// A window of the size that was named in the hello.
    pub const fn new(channel: Channel, size: u32) -> Self {
        Self {
            channel,
            size,
            expected: size,
            returnable: 0,
        }
    }

    /// A window of which only a part may be used for now: bytes that came over
    /// another link fill the rest.
    pub const fn resumed(channel: Channel, size: u32, expected: u32) -> Self {
        Self {
            channel,
            size,
            expected,
            returnable: 0,
        }
    }

    /// Bytes arrived.
    ///
    /// # Errors
    /// [`WireError::Overrun`] if the sender had no credit for them.
    pub fn arrived(&mut self, bytes: u32) -> Result<(), WireError> {
        self.expected = self
            .expected
            .checked_sub(bytes)
            .ok_or(WireError::Overrun(self.channel))?;
        Ok(())
    }

    /// The reader consumed bytes that had arrived. Answers how much credit to
    /// send now, if it is worth a frame.
    #[must_use = "the sender waits for this credit"]
    pub fn consumed(&mut self, bytes: u32) -> Option<u32> {
        self.returnable = self.returnable.saturating_add(bytes);
        if self.returnable < self.size.div_ceil(2) {
            return None;
        }
        let grant = core::mem::take(&mut self.returnable);
        self.expected = self.expected.saturating_add(grant);
        Some(grant)
    }
}
