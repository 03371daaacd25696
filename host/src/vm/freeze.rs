//! The processes of a guest, which stand still while it is saved.

use std::time::Duration;

use vmcell_wire::{Outcome, Request};

use crate::{
    error::Error,
    session::{OpenError, Session, StreamEvent},
};

/// How long the guest may take. It gives up by itself before.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Freezes all processes. They stay frozen in every copy of the VM until it has an
/// identity of its own.
pub(super) async fn freeze(session: &Session) -> Result<(), Error> {
    request(session, &Request::Freeze, "freeze its processes").await
}

/// Lets the processes run again.
pub(super) async fn thaw(session: &Session) {
    let thawed = request(session, &Request::Thaw, "let its processes run again").await;
    if let Err(error) = thawed {
        tracing::warn!(%error, "the processes of a VM may stand still");
    }
}

/// Sends a request before those that are held back.
async fn request(
    session: &Session,
    request: &Request<'_>,
    doing: &'static str,
) -> Result<(), Error> {
    let mut stream = session.open_first(request).map_err(|error| match error {
        OpenError::Unsupported(feature) => Error::Unsupported {
            feature: feature.names().next().unwrap_or("the request"),
            agent: session.peer().build.clone(),
        },
        other => Error::Transport(format!("{other:?}")),
    })?;
    let event = tokio::time::timeout(TIMEOUT, stream.next()).await;
    match event.map_err(|_| Error::Unresponsive(TIMEOUT))? {
        Ok(StreamEvent::Closed(closing)) => match closing.outcome() {
            Outcome::Done => Ok(()),
            Outcome::Failed(failure) => Err(Error::Control {
                doing,
                reason: crate::printable(failure.text.as_bytes()).into_owned(),
            }),
            _ => Err(Error::unexpected_reply()),
        },
        Ok(_) => Err(Error::unexpected_reply()),
        Err(error) => Err(Error::Transport(error.to_string())),
    }
}
