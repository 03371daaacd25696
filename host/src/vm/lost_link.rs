//! What a lost link means to the caller.

use std::time::Duration;

use tokio::time::timeout;

use super::Vm;
use crate::{
    error::Error,
    session::{LinkError, StreamEvent},
};

/// How long the end of the VM may take to be known after its link is lost.
const END_GRACE: Duration = Duration::from_millis(500);

/// The same after the link was closed for good: the kernel may take seconds to
/// end a VMM.
const END_TIMEOUT: Duration = Duration::from_secs(5);

impl Vm {
    /// Returns the caller's error for a lost link: usually that the VM is gone.
    pub(crate) async fn explain(&self, error: LinkError) -> Error {
        let mut end = timeout(END_GRACE, self.ended()).await;
        let is_closed = matches!(error, LinkError::Closed | LinkError::Io(_));
        let is_session_over = self.session().link_error().borrow().is_some();
        if end.is_err() && is_closed && is_session_over {
            end = timeout(END_TIMEOUT, self.ended()).await;
        }
        match end {
            Ok(end) if !matches!(error, LinkError::Violation(_)) => Error::Gone(end.reason),
            _ => Error::Transport(error.to_string()),
        }
    }

    /// Returns the event, or the caller's error for a lost link.
    pub(crate) async fn explained(
        &self,
        event: Result<StreamEvent, LinkError>,
    ) -> Result<StreamEvent, Error> {
        match event {
            Ok(event) => Ok(event),
            Err(error) => Err(self.explain(error).await),
        }
    }
}
