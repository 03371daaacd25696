use vmcell_wire::{
    Channel, Event, Outcome,
    credit::{ReceiveWindow, SendWindow},
    encode,
};

use super::Filled;
use crate::{
    link::{
        Lost,
        outgoing::{Added, Outgoing},
    },
    port::{ConnectionId, Connections, Progress, failure},
    process::{Caller, INPUT_WINDOW},
};

/// A stream that is a connection to a port.
pub(crate) struct PortStream {
    caller: Caller,
    connection: ConnectionId,
    input: ReceiveWindow,
    output: SendWindow,
    /// What the host was told.
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nothing,
    Connected,
    /// That the program says no more.
    Ended,
}

impl PortStream {
    pub(crate) fn new(caller: Caller, connection: ConnectionId, window: u32) -> Self {
        Self {
            caller,
            connection,
            input: ReceiveWindow::new(Channel::Stdin, INPUT_WINDOW),
            output: SendWindow::new(Channel::Stdout, window),
            told: Told::Nothing,
        }
    }

    /// The host does not want it any more, or its link is gone.
    pub(super) fn leave(&self, connections: &mut Connections) {
        connections.leave(self.connection);
    }

    pub(super) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), Lost> {
        if channel == Channel::Stdout {
            self.output.granted(bytes)?;
        }
        Ok(())
    }

    /// Bytes for the program. It gets them in this stream's turn, together with
    /// those that follow.
    pub(super) fn input(
        &mut self,
        bytes: &[u8],
        connections: &mut Connections,
    ) -> Result<(), Lost> {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.input.arrived(count)?;
        if let Some(connection) = connections.get_mut(self.connection) {
            connection.give(bytes);
        }
        Ok(())
    }

    pub(super) fn input_ended(&self, connections: &mut Connections) {
        if let Some(connection) = connections.get_mut(self.connection) {
            connection.end_input();
        }
    }

    /// Moves bytes both ways. It sleeps when neither is possible.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        connections: &mut Connections,
    ) -> Result<Filled, Lost> {
        let stream = self.caller.stream;
        let Some(connection) = connections.get_mut(self.connection) else {
            return Ok(Filled::Finished);
        };
        if connection.progress() == Progress::Dialling {
            return Ok(Filled::Asleep);
        }
        if self.told == Told::Nothing && connection.was_made() {
            self.told = Told::Connected;
            encode::event(outgoing.control(), stream, &Event::Connected)?;
        }
        connection.flush();
        let consumed = u32::try_from(connection.take_consumed()).unwrap_or(u32::MAX);
        if let Some(credit) = self.input.consumed(consumed) {
            encode::credit(outgoing.control(), stream, Channel::Stdin, credit);
        }
        let allowed = usize::try_from(self.output.available()).unwrap_or(usize::MAX);
        if connection.can_read() && allowed > 0 {
            let read = |room: &mut [u8]| connection.read(room);
            if let Added::Frame(count) =
                outgoing.add_read(stream, Channel::Stdout, allowed, read)?
            {
                self.output.take(u32::try_from(count).unwrap_or(u32::MAX));
                return Ok(Filled::Something);
            }
        }
        if connection.has_ended() && self.told < Told::Ended {
            self.told = Told::Ended;
            encode::end(outgoing.control(), stream, Channel::Stdout);
        }
        match connection.progress() {
            Progress::Dialling | Progress::Open => Ok(Filled::Asleep),
            Progress::Over => {
                connections.close(self.connection);
                encode::close(outgoing.control(), stream, &Outcome::Done)?;
                Ok(Filled::Finished)
            }
            Progress::Failed(error) => {
                connections.reset(self.connection);
                let outcome = Outcome::Failed(failure(error));
                encode::close(outgoing.control(), stream, &outcome)?;
                Ok(Filled::Finished)
            }
        }
    }
}
