//! Requests to the agent of a VM.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;
use vmcell_wire::{Outcome, Request};

use super::{End, Vm, VmEnd, VmState};
use crate::{
    error::Error,
    secret::{Secret, TooManySecrets},
    session::{Closing, LinkError, OpenError, Session, Stream, StreamEvent},
};

const MANY_SECRETS: &str = "the programs of this VM have got more secrets than can be \
    searched for in what they print: start another VM";

impl Vm {
    pub(crate) fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Returns the session, for tasks that must not keep the VM running.
    pub(crate) fn shared_session(&self) -> Arc<Session> {
        self.shared.session.clone()
    }

    /// Fails with [`Error::Gone`] if the VM has ended or was killed.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        match self.state() {
            VmState::Ended(VmEnd { reason, .. }) | VmState::Killing(reason) => {
                Err(Error::Gone(reason))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether requests can reach the VM: it has not ended, its link works, and so
    /// does the runtime that serves it.
    pub(crate) fn has_link(&self) -> bool {
        let is_served = self.shared.state.has_changed().is_ok();
        let has_failed = self.session().link_error().borrow().is_some();
        is_served && !has_failed && self.check_running().is_ok()
    }

    /// Opens a stream with a request.
    pub(crate) fn open(&self, request: &Request<'_>) -> Result<Stream, Error> {
        let opened = self.shared.session.open(request);
        opened.map_err(|error| self.open_error(error))
    }

    /// Masks secrets in all that programs print from now on.
    pub(crate) fn hide_secrets(&self, secrets: &[Secret]) -> Result<(), Error> {
        let values = secrets.iter().map(|secret| secret.value().to_bytes());
        let granted = self.session().secrets().grant(values);
        granted.map_err(|TooManySecrets| self.open_error(OpenError::TooManySecrets))
    }

    /// Sends a request that is answered by its outcome alone.
    pub(crate) async fn request(&self, request: &Request<'_>) -> Result<Closing, Error> {
        self.outcome(&mut self.open(request)?).await
    }

    /// Waits for the outcome of a request that is answered by it alone.
    pub(crate) async fn outcome(&self, stream: &mut Stream) -> Result<Closing, Error> {
        match self.explained(stream.next().await).await? {
            StreamEvent::Closed(closing) => Ok(closing),
            _ => Err(Error::unexpected_reply()),
        }
    }

    pub(crate) fn open_error(&self, error: OpenError) -> Error {
        match (error, self.state()) {
            (OpenError::TooLarge, _) => {
                Error::Invalid("arguments and environment are larger than 256 KiB".to_owned())
            }
            (OpenError::Unsupported(feature), _) => Error::Unsupported {
                feature: feature.names().next().unwrap_or("the request"),
                agent: self.shared.session.peer().build.clone(),
            },
            (OpenError::Paused, _) => Error::Paused,
            (OpenError::TooManySecrets, _) => Error::Invalid(MANY_SECRETS.to_owned()),
            (OpenError::Full, _) => Error::Busy("too many commands run at once in this VM"),
            (_, VmState::Ended(VmEnd { reason, .. }) | VmState::Killing(reason)) => {
                Error::Gone(reason)
            }
            (OpenError::Link(error @ LinkError::Violation(_)), _) => {
                Error::Transport(error.to_string())
            }
            (OpenError::Link(_), _) => Error::Gone(End::Died),
        }
    }

    /// Measures a round trip to the agent. `None` if it does not answer.
    pub(super) async fn ping(&self) -> Option<Duration> {
        let asked = Instant::now();
        let mut stream = self.shared.session.open(&Request::Ping).ok()?;
        match stream.next().await {
            Ok(StreamEvent::Closed(closing)) if closing.outcome() == Outcome::Pong => {
                Some(asked.elapsed())
            }
            _ => None,
        }
    }

    /// How many requests on files run at once. More have to wait.
    pub(super) const FILE_PERMITS: usize = 32;

    /// Waits until another request on files may start.
    pub(crate) async fn file_permit(&self) -> Option<OwnedSemaphorePermit> {
        let permits = self.shared.file_permits.clone();
        // The semaphore is never closed.
        permits.acquire_owned().await.ok()
    }
}
