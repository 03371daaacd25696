use vmcell_wire::{Event, Outcome, Request, service::ServiceRequest};

use super::{ServiceStatus, Services};
use crate::{
    error::Error,
    result_budget::ResultBudget,
    session::{LinkError, OpenError, Session, StreamEvent},
};

/// Why services could not be listed.
#[derive(Debug)]
pub(super) enum ListError {
    /// The stream could not be opened.
    Open(OpenError),
    /// The link was lost meanwhile.
    Link(LinkError),
    /// The guest has sent too much, or something unexpected.
    Guest(Error),
}

/// Returns the status of all services of a guest.
pub(super) async fn list(session: &Session) -> Result<Vec<ServiceStatus>, ListError> {
    let mut list: Vec<ServiceStatus> = Vec::new();
    let mut budget = ResultBudget::new(
        "the list of services",
        Services::MAX_LISTED,
        // A status has a few hundred bytes of text.
        usize::MAX,
        "name a service",
    );
    let unexpected = || ListError::Guest(Error::unexpected_reply());
    loop {
        let after = list.last().map_or("", |last| last.name.as_str());
        let request = Request::Service(ServiceRequest::List { after });
        let mut stream = session.open(&request).map_err(ListError::Open)?;
        let before = list.len();
        loop {
            match stream.next().await.map_err(ListError::Link)? {
                StreamEvent::Listed(entry) => {
                    let status = match entry.event() {
                        Event::Service(state) => ServiceStatus::from_wire(&state),
                        _ => None,
                    };
                    budget.add(0).map_err(ListError::Guest)?;
                    list.push(status.ok_or_else(unexpected)?);
                }
                StreamEvent::Closed(closing) => match closing.outcome() {
                    Outcome::EndOfList { more: false } => return Ok(list),
                    Outcome::EndOfList { more: true } if list.len() > before => break,
                    _ => return Err(unexpected()),
                },
                _ => return Err(unexpected()),
            }
        }
    }
}
