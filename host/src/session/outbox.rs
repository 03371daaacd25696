use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use vmcell_wire::{Channel, Position, WireError, credit::SendWindow, limits::MAX_WINDOW};

/// Standard input for the guest: how much may be sent, and what was sent and not
/// acknowledged yet, to send it again if the link breaks.
#[derive(Debug)]
pub(super) struct Outbox {
    window: SendWindow,
    /// The size of the guest's window when it is empty.
    size: u32,
    /// Sent and not acknowledged. The window bounds it.
    sent: VecDeque<Bytes>,
    /// The offset of the first byte of `sent`.
    arrived: u64,
    /// Credit still to come for earlier bytes: the guest has acknowledged them,
    /// but the process has not read them yet.
    pending_credit: u32,
    ended: bool,
}

impl Outbox {
    /// Creates a window of which `available` bytes may be sent at once.
    pub(super) fn new(size: u32, available: u32) -> Self {
        Self {
            window: SendWindow::new(Channel::Stdin, available),
            size,
            sent: VecDeque::new(),
            arrived: 0,
            pending_credit: 0,
            ended: false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes as much from the front of `bytes` as may be sent now, at most `max`.
    pub(super) fn send(&mut self, bytes: &mut Bytes, max: u32) -> Bytes {
        let wanted = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(max);
        let allowed = self.window.take(wanted);
        let payload = bytes.split_to(allowed as usize);
        if !payload.is_empty() {
            self.sent.push_back(payload.clone());
        }
        payload
    }

    /// Handles credit: the process has read this many bytes.
    pub(super) fn granted(&mut self, bytes: u32) -> Result<(), WireError> {
        self.window.granted(bytes)?;
        let for_earlier = bytes.min(self.pending_credit);
        self.pending_credit -= for_earlier;
        self.drop_arrived((bytes - for_earlier).into());
        Ok(())
    }

    /// Stops sending until [`resume`](Self::resume), because the link is lost.
    pub(super) fn pause(&mut self) {
        self.window = SendWindow::new(Channel::Stdin, 0);
    }

    /// Continues at the position that the guest reports. The
    /// [`unacknowledged`](Self::unacknowledged) bytes must be sent again.
    pub(super) fn resume(&mut self, position: Position) -> Result<(), WireError> {
        let taken = position.offset.checked_sub(self.arrived);
        self.drop_arrived(taken.ok_or(WireError::Malformed)?);
        if self.arrived != position.offset {
            return Err(WireError::Malformed);
        }
        self.set_position(position)?;
        for bytes in &self.sent {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            if self.window.take(length) < length {
                return Err(WireError::Malformed);
            }
        }
        Ok(())
    }

    /// Returns the bytes that were sent and may not have arrived.
    pub(super) fn unacknowledged(&self) -> Vec<Bytes> {
        self.sent.iter().cloned().collect()
    }

    /// Begins at the position of an input that others may have written to before.
    pub(super) fn begin_at(&mut self, position: Position) -> Result<(), WireError> {
        self.set_position(position)?;
        self.arrived = position.offset;
        Ok(())
    }

    /// Sets the window and the pending credit from the guest's position.
    fn set_position(&mut self, position: Position) -> Result<(), WireError> {
        self.window = window_at(position)?;
        self.pending_credit = self.size.saturating_sub(position.window);
        Ok(())
    }

    fn drop_arrived(&mut self, mut count: u64) {
        while let Some(bytes) = self.sent.front_mut() {
            let length = bytes.len() as u64;
            if length > count {
                bytes.advance(count as usize);
                self.arrived += count;
                return;
            }
            self.sent.pop_front();
            self.arrived += length;
            count -= length;
        }
    }
}

/// Returns the window at a position, after checking both.
fn window_at(position: Position) -> Result<SendWindow, WireError> {
    if position.window > MAX_WINDOW {
        return Err(WireError::CreditOverflow(Channel::Stdin));
    }
    // No real input is this long, and no offset after it can overflow.
    if position.offset > u64::MAX / 2 {
        return Err(WireError::Malformed);
    }
    Ok(SendWindow::new(Channel::Stdin, position.window))
}
