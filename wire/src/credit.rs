//! Credit-based flow control.
//!
//! ```text
//! sender                                receiver
//! SendWindow   -- data: take(n) ----->  ReceiveWindow::arrived(n)
//!              <-- Credit(n) ---------  ReceiveWindow::consumed(n)
//!              granted(n)
//! ```
//!
//! Both windows begin at the size that the receiver sent in its hello. The
//! receiver grants more credit as its reader consumes data, half a window at a
//! time, so a slow reader stops the sender and credit frames stay rare.

use crate::{error::WireError, frame::Channel, limits::MAX_WINDOW};

/// The credit that a sender has left on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow {
    channel: Channel,
    available: u32,
}

impl SendWindow {
    /// Creates a window of the size that the receiver sent in its hello.
    pub const fn new(channel: Channel, size: u32) -> Self {
        Self {
            channel,
            available: size,
        }
    }

    /// Returns how many bytes may be sent now.
    pub const fn available(&self) -> u32 {
        self.available
    }

    /// Takes up to `wanted` bytes of credit. Returns how many it took.
    pub fn take(&mut self, wanted: u32) -> u32 {
        let taken = wanted.min(self.available);
        self.available = self.available.saturating_sub(taken);
        taken
    }

    /// Adds credit that the receiver granted.
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

/// The bytes that a receiver must still accept on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    channel: Channel,
    size: u32,
    /// Bytes granted but not yet received.
    expected: u32,
    /// Bytes consumed but not yet granted again.
    returnable: u32,
}

impl ReceiveWindow {
    /// Creates a window of the size that was sent in the hello.
    pub const fn new(channel: Channel, size: u32) -> Self {
        Self {
            channel,
            size,
            expected: size,
            returnable: 0,
        }
    }

    /// Creates a window of which only `expected` bytes are free: bytes that came
    /// over an earlier link fill the rest.
    pub const fn resumed(channel: Channel, size: u32, expected: u32) -> Self {
        Self {
            channel,
            size,
            expected,
            returnable: 0,
        }
    }

    /// Returns how many bytes the sender has credit for.
    pub const fn free(&self) -> u32 {
        self.expected
    }

    /// Records that bytes arrived.
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

    /// Records that the reader consumed bytes. Returns the credit to send now, if
    /// there is enough for a frame: half a window.
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
