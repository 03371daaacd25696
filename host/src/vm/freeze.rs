//! The processes of a guest, which stand still while it is saved.

use std::time::Duration;

use vmcell_wire::{
    Outcome, Request,
    files::{FileOperation, FileRequest},
};

use crate::{
    error::Error,
    session::{OpenError, Session, StreamEvent},
};

/// How long the guest may take. It gives up by itself before.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the guest may take to write all files to its disk.
const SYNC_TIMEOUT: Duration = Duration::from_secs(60);

/// Freezes all processes. They stay frozen in every copy of the VM until it has an
/// identity of its own.
pub(super) async fn freeze(session: &Session) -> Result<(), Error> {
    request(session, &Request::Freeze, "freeze its processes").await
}

/// Writes all files to the disk.
pub(super) async fn sync(session: &Session) -> Result<(), Error> {
    let request = Request::Files(FileRequest {
        root: b"/",
        operation: FileOperation::Sync { path: b"" },
    });
    send(session, &request, "sync its disk", SYNC_TIMEOUT).await
}

/// Lets the processes run again.
pub(super) async fn thaw(session: &Session) {
    let thawed = request(session, &Request::Thaw, "let its processes run again").await;
    if let Err(error) = thawed {
        tracing::warn!(%error, "the processes of a VM may stand still");
    }
}

async fn request(
    session: &Session,
    request: &Request<'_>,
    doing: &'static str,
) -> Result<(), Error> {
    send(session, request, doing, TIMEOUT).await
}

/// Sends a request before those that are held back.
async fn send(
    session: &Session,
    request: &Request<'_>,
    doing: &'static str,
    timeout: Duration,
) -> Result<(), Error> {
    let mut stream = session.open_first(request).map_err(|error| match error {
        OpenError::Unsupported(feature) => Error::Unsupported {
            feature: feature.names().next().unwrap_or("the request"),
            agent: session.peer().build.clone(),
        },
        other => Error::Transport(format!("{other:?}")),
    })?;
    let event = tokio::time::timeout(timeout, stream.next()).await;
    match event.map_err(|_| Error::Unresponsive(timeout))? {
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
