use std::time::Duration;

use tokio::time::timeout;
use vmcell_wire::{Outcome, Request};

use crate::session::{Session, Stream, StreamEvent};

/// Asks a guest how many processes it has.
///
/// At most one question is open: a guest that does not answer gets no other one, so it
/// cannot make this machine keep more and more of them.
#[derive(Debug, Default)]
pub(crate) struct ProcessCounter {
    /// The question that has no answer yet.
    asked: Option<Stream>,
}

/// How long a guest may take to answer. A sample waits for it, so this is less than the time
/// from one sample to the next.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

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

    async fn ask(&mut self, session: &Session) -> Option<u32> {
        if let Some(late) = &mut self.asked {
            // It is the number of an earlier second.
            answer(late).await;
            self.asked = None;
        }
        let stream = session.open(&Request::CountProcesses).ok()?;
        let count = answer(self.asked.insert(stream)).await;
        self.asked = None;
        count
    }
}

/// Waits for the number. `None` if the answer is another one, or there will be none.
///
/// Cancel safe.
async fn answer(stream: &mut Stream) -> Option<u32> {
    loop {
        match stream.next().await {
            Ok(StreamEvent::Closed(closing)) => match closing.outcome() {
                Outcome::Processes { count } => return Some(count),
                _ => return None,
            },
            // No event belongs to it.
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}
