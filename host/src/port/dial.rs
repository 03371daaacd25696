use vmcell_wire::{FailureKind, Outcome, Request};

use super::{Connection, PortError};
use crate::{
    printable,
    session::{LinkError, OpenError, Session, StreamEvent},
};

/// Why a connection could not be made.
#[derive(Debug)]
pub(super) enum DialError {
    /// The stream could not be opened.
    Open(OpenError),
    /// The link was lost meanwhile.
    Link(LinkError),
    /// The guest reports that it failed.
    Port(PortError),
    /// The guest sent an unexpected reply.
    UnexpectedReply,
}

/// Connects to a port of the guest.
pub(super) async fn dial(session: &Session, port: u16) -> Result<Connection, DialError> {
    let opened = session.open(&Request::Dial { port });
    let mut stream = opened.map_err(DialError::Open)?;
    match stream.next_except_output().await.map_err(DialError::Link)? {
        StreamEvent::Connected => Ok(Connection::new(stream)),
        StreamEvent::Closed(closing) => Err(refusal(&closing.outcome(), port)),
        _ => Err(DialError::UnexpectedReply),
    }
}

fn refusal(outcome: &Outcome<'_>, port: u16) -> DialError {
    const ECONNREFUSED: u16 = 111;
    match outcome {
        Outcome::Failed(failure)
            if failure.kind == FailureKind::NotFound && failure.errno == ECONNREFUSED =>
        {
            DialError::Port(PortError::NobodyListens { port })
        }
        Outcome::Failed(failure) => DialError::Port(PortError::Unreachable {
            port,
            errno: (failure.errno != 0).then_some(failure.errno.into()),
            text: printable(failure.text.as_bytes()).into_owned(),
        }),
        _ => DialError::UnexpectedReply,
    }
}
