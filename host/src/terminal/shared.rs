use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::{
    model::{EndReason, Model},
    record_thread::RecordThread,
};
use crate::redaction::Redacted;

/// The state that the handles of a terminal share with its reader.
pub(super) struct Shared {
    model: Mutex<Model>,
    /// Counts the changes of the model.
    changes: watch::Sender<u64>,
    pub(super) records: Option<RecordThread>,
}

/// How many pieces are queued for a subscriber before the terminal waits for it.
const SUBSCRIBER_QUEUE: usize = 16;

impl Shared {
    pub(super) fn new(model: Model, records: Option<RecordThread>) -> Self {
        Self {
            model: Mutex::new(model),
            changes: watch::Sender::new(0),
            records,
        }
    }

    /// Locks the model. Must not be held across an await.
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified of changes from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn notify(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Records the end of the output.
    pub(super) async fn end(&self, ended: EndReason) {
        if let Some(records) = &self.records {
            records.end(ended).await;
        }
        {
            let mut model = self.model();
            model.ended = Some(ended);
            model.subscribers.clear();
        }
        self.notify();
    }

    /// Returns the output that is kept, and a receiver of all output after it.
    pub(super) fn follow(&self) -> (Bytes, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(SUBSCRIBER_QUEUE);
        // Under one lock, so that no output is duplicated or missed.
        let mut model = self.model();
        let backlog = model.kept_output();
        if model.ended.is_none() {
            model.subscribers.push(sender);
        }
        (backlog, receiver)
    }

    /// Applies a change to the model, and passes its output to the records and all
    /// subscribers, waiting for slow ones. Returns the replies to the program's
    /// queries.
    pub(super) async fn publish(&self, change: impl FnOnce(&mut Model) -> Redacted) -> Vec<u8> {
        let (output, answers, subscribers) = {
            let mut model = self.model();
            let output = change(&mut model);
            model.subscribers.retain(|sender| !sender.is_closed());
            let answers = model.emulator.take_replies();
            (output, answers, model.subscribers.clone())
        };
        let bytes = output.bytes.clone();
        if bytes.is_empty() && output.late_masks.is_empty() {
            return answers;
        }
        self.notify();
        if let Some(records) = &self.records {
            records.append_output(output).await;
        }
        for subscriber in subscribers {
            // Fails only if the subscriber is gone.
            let _ = subscriber.send(bytes.clone()).await;
        }
        answers
    }
}
