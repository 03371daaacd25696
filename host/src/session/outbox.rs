use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use vmcell_wire::{Channel, Position, WireError, credit::SendWindow, limits::MAX_WINDOW};

/// Standard input on its way to the guest: what may be sent, and what was sent
/// and is not known to have arrived. A link that breaks loses what was on it.
#[derive(Debug)]
pub(super) struct Outbox {
    window: SendWindow,
    /// How large the guest's window is when it holds nothing.
    size: u32,
    /// Sent, and not known to have arrived. The window bounds it.
    sent: VecDeque<Bytes>,
    /// The offset of the first byte of `sent`.
    arrived: u64,
    /// Credit that is still to come for bytes before that: the guest said that
    /// it has them, and holds them.
    pending_credit: u32,
    ended: bool,
}

impl Outbox {
    /// A window of which `available` may be used at once.
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

    /// Takes as much from the front of `bytes` as may be sent now.
    pub(super) fn send(&mut self, bytes: &mut Bytes, max: u32) -> Bytes {
        let wanted = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(max);
        let allowed = self.window.take(wanted);
        let payload = bytes.split_to(allowed as usize);
        if !payload.is_empty() {
            self.sent.push_back(payload.clone());
        }
        payload
    }

    /// The guest is done with bytes and has room for as many more.
    pub(super) fn granted(&mut self, bytes: u32) -> Result<(), WireError> {
        self.window.granted(bytes)?;
        let for_earlier = bytes.min(self.pending_credit);
        self.pending_credit -= for_earlier;
        self.drop_arrived((bytes - for_earlier).into());
        Ok(())
    }

    /// The link is lost: nothing may be sent before the guest has said where
    /// it stands.
    pub(super) fn pause(&mut self) {
        self.window = SendWindow::new(Channel::Stdin, 0);
    }

    /// The guest says where it stands: [`unacknowledged`](Self::unacknowledged)
    /// bytes must be sent again.
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

    /// What was sent and may not have arrived.
    pub(super) fn unacknowledged(&self) -> Vec<Bytes> {
        self.sent.iter().cloned().collect()
    }

    /// This handle begins to feed an input that others may have fed before.
    pub(super) fn begin_at(&mut self, position: Position) -> Result<(), WireError> {
        self.set_position(position)?;
        self.arrived = position.offset;
        Ok(())
    }

    /// The guest has everything before this, and room for so much more.
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

/// What a guest may grant where it stands.
fn window_at(position: Position) -> Result<SendWindow, WireError> {
    if position.window > MAX_WINDOW {
        return Err(WireError::CreditOverflow(Channel::Stdin));
    }
    // No input ever comes as far as this, so no offset behind it overflows.
    if position.offset > u64::MAX / 2 {
        return Err(WireError::Malformed);
    }
    Ok(SendWindow::new(Channel::Stdin, position.window))
}
