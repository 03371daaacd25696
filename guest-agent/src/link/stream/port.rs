use vmcell_wire::{
    Channel, Event, Outcome,
    credit::{ReceiveWindow, SendWindow},
    encode,
};

use super::Filled;
use crate::{
    ids::{Caller, ConnectionId},
    link::{
        LinkError,
        outgoing::{Added, Outgoing},
    },
    port::{ConnectionState, Connections, failure},
    process::INPUT_WINDOW,
};

/// The stream of a connection to a port.
pub(crate) struct PortStream {
    caller: Caller,
    connection: ConnectionId,
    input: ReceiveWindow,
    output: SendWindow,
    /// What was reported to the host.
    reported: Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reported {
    Nothing,
    Connected,
    /// The end of the program's output.
    Ended,
}

impl PortStream {
    pub(crate) fn new(caller: Caller, connection: ConnectionId, window: u32) -> Self {
        Self {
            caller,
            connection,
            input: ReceiveWindow::new(Channel::Stdin, INPUT_WINDOW),
            output: SendWindow::new(Channel::Stdout, window),
            reported: Reported::Nothing,
        }
    }

    /// Abandons the connection: it was cancelled, or its link is gone.
    pub(super) fn abandon(&self, connections: &mut Connections) {
        connections.abandon(self.connection);
    }

    pub(super) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), LinkError> {
        if channel == Channel::Stdout {
            self.output.granted(bytes)?;
        }
        Ok(())
    }

    /// Queues bytes for the program. They are sent when this stream is polled,
    /// together with those that follow.
    pub(super) fn input(
        &mut self,
        bytes: &[u8],
        connections: &mut Connections,
    ) -> Result<(), LinkError> {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.input.arrived(count)?;
        if let Some(connection) = connections.get_mut(self.connection) {
            connection.queue_input(bytes);
        }
        Ok(())
    }

    pub(super) fn input_ended(&self, connections: &mut Connections) {
        if let Some(connection) = connections.get_mut(self.connection) {
            connection.end_input();
        }
    }

    /// Moves bytes both ways. Returns [`Filled::Asleep`] when neither is
    /// possible.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        connections: &mut Connections,
    ) -> Result<Filled, LinkError> {
        let stream = self.caller.stream;
        let Some(connection) = connections.get_mut(self.connection) else {
            return Ok(Filled::Finished);
        };
        if connection.state() == ConnectionState::Dialling {
            return Ok(Filled::Asleep);
        }
        if self.reported == Reported::Nothing && connection.was_connected() {
            self.reported = Reported::Connected;
            outgoing.event(stream, &Event::Connected)?;
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
        if connection.has_ended() && self.reported < Reported::Ended {
            self.reported = Reported::Ended;
            encode::end(outgoing.control(), stream, Channel::Stdout);
        }
        match connection.state() {
            ConnectionState::Dialling | ConnectionState::Open => Ok(Filled::Asleep),
            ConnectionState::Over => {
                connections.close(self.connection);
                outgoing.close(stream, &Outcome::Done)?;
                Ok(Filled::Finished)
            }
            ConnectionState::Failed(error) => {
                connections.reset(self.connection);
                let outcome = Outcome::Failed(failure(error));
                outgoing.close(stream, &outcome)?;
                Ok(Filled::Finished)
            }
        }
    }
}
