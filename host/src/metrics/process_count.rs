use std::time::Duration;

use tokio::time::timeout;
use vmcell_wire::{Header, Outcome, Request};

use crate::session::{Closing, LinkTraffic, Session, Stream, StreamEvent};

/// Asks a guest how many processes it has.
///
/// At most one question is open: a guest that does not answer gets no other one, so it
/// cannot make this machine keep more and more of them.
#[derive(Debug, Default)]
pub(crate) struct ProcessCounter {
    /// The question that has no answer yet.
    asked: Option<Stream>,
    traffic: LinkTraffic,
}

/// How long a guest may take to answer. A sample waits for it, so this is less than the time
/// from one sample to the next.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// The size of a question, and of the acknowledgement of its answer.
const SENT_BYTES: usize = Header::SIZE + 1 + Header::SIZE;

impl ProcessCounter {
    /// Returns the number of processes, or `None` if the guest does not answer in time or
    /// cannot. Nobody uses the VM by this: see [`Session::unnoticed`].
    pub(crate) async fn count(&mut self, session: &Session) -> Option<u32> {
        let needed = Request::CountProcesses.capability();
        if session.pauses().is_paused() || !session.peer().capabilities.contains(needed) {
            return None;
        }
        let asking = session.unnoticed(self.ask(session));
        timeout(ANSWER_TIMEOUT, asking).await.ok().flatten()
    }

    /// Returns how many bytes the answered questions took, and their answers.
    pub(crate) const fn traffic(&self) -> LinkTraffic {
        self.traffic
    }

    /// Cancel safe: a question that was sent stays open.
    async fn ask(&mut self, session: &Session) -> Option<u32> {
        // A late answer is the number of an earlier second.
        self.answer().await;
        self.asked = Some(session.open(&Request::CountProcesses).ok()?);
        self.answer().await
    }

    /// Waits for the answer to the open question. `None` if it is no number, or there will
    /// be no answer.
    async fn answer(&mut self) -> Option<u32> {
        let closing = closing(self.asked.as_mut()?).await;
        self.asked = None;
        let closing = closing?;
        self.traffic += LinkTraffic {
            received: (Header::SIZE + closing.payload().len()) as u64,
            sent: SENT_BYTES as u64,
        };
        match closing.outcome() {
            Outcome::Processes { count } => Some(count),
            _ => None,
        }
    }
}

/// Waits until a stream is closed. `None` if the link has failed.
async fn closing(stream: &mut Stream) -> Option<Closing> {
    loop {
        match stream.next().await {
            Ok(StreamEvent::Closed(closing)) => return Some(closing),
            // No event belongs to it.
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}
