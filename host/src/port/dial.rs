use vmcell_wire::{FailureKind, Request};

use super::{Connection, PortError};
use crate::session::{Closing, LinkError, OpenError, Session, StreamEvent};

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
        StreamEvent::Closed(Closing::Failed(failed)) => {
            const ECONNREFUSED: u16 = 111;
            Err(DialError::Port(
                if failed.kind == FailureKind::NotFound && failed.errno == ECONNREFUSED {
                    PortError::NobodyListens { port }
                } else {
                    PortError::Unreachable {
                        port,
                        errno: (failed.errno != 0).then_some(failed.errno.into()),
                        text: failed.text,
                    }
                },
            ))
        }
        _ => Err(DialError::UnexpectedReply),
    }
}
