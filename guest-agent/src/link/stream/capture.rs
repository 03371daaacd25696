use vmcell_wire::{
    Channel, Outcome,
    credit::{ReceiveWindow, SendWindow},
};

use super::Filled;
use crate::{
    ids::Caller,
    link::{
        LinkError,
        outgoing::{Added, Outgoing},
    },
    network::Network,
    process::INPUT_WINDOW,
};

/// The stream on which a host decides about connections of programs.
pub(crate) struct CaptureStream {
    caller: Caller,
    input: ReceiveWindow,
    output: SendWindow,
}

impl CaptureStream {
    pub(crate) fn new(caller: Caller, window: u32) -> Self {
        Self {
            caller,
            input: ReceiveWindow::new(Channel::Stdin, INPUT_WINDOW),
            output: SendWindow::new(Channel::Stdout, window),
        }
    }

    /// Ends the capture: it was cancelled, or its link is gone.
    pub(super) fn abandon(&self, network: &mut Network) {
        network.end(self.caller);
    }

    pub(super) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), LinkError> {
        if channel == Channel::Stdout {
            self.output.granted(bytes)?;
        }
        Ok(())
    }

    /// Takes answers. Returns how much credit to send back.
    pub(super) fn answer(
        &mut self,
        bytes: &[u8],
        network: &mut Network,
    ) -> Result<Option<u32>, LinkError> {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.input.arrived(count)?;
        network.answer(self.caller, bytes)?;
        Ok(self.input.consumed(count))
    }

    /// Adds what programs want. Closes the stream if another one has replaced it.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        network: &mut Network,
    ) -> Result<Filled, LinkError> {
        let stream = self.caller.stream;
        let Some(wants) = network.unsent(self.caller) else {
            outgoing.close(stream, &Outcome::Done)?;
            return Ok(Filled::Finished);
        };
        let allowed = usize::try_from(self.output.available()).unwrap_or(usize::MAX);
        let added = outgoing.add_copy(stream, Channel::Stdout, [wants, &[]], allowed)?;
        let Added::Frame(count) = added else {
            return Ok(Filled::Nothing);
        };
        self.output.take(u32::try_from(count).unwrap_or(u32::MAX));
        network.sent(count);
        Ok(Filled::Something)
    }
}
