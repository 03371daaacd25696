use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::{
    model::{EndReason, Model},
    record_thread::RecordThread,
    redaction::Redacted,
};

/// What the handles of a terminal and its reader share.
pub(super) struct Shared {
    model: Mutex<Model>,
    /// Counts what has happened.
    changes: watch::Sender<u64>,
    pub(super) records: Option<RecordThread>,
}

/// How many pieces a follower may be behind before the terminal waits for it.
const SUBSCRIBER_QUEUE: usize = 16;

impl Shared {
    pub(super) fn new(model: Model, records: Option<RecordThread>) -> Self {
        Self {
            model: Mutex::new(model),
            changes: watch::Sender::new(0),
            records,
        }
    }

    /// Never held while something is waited for.
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when something happens. What has happened before is not told.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn notify(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Nothing more will come.
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

    /// What was printed as far as it is kept here, and all that follows.
    pub(super) fn follow(&self) -> (Bytes, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(SUBSCRIBER_QUEUE);
        // Both under one lock, so that nothing comes twice or not at all.
        let mut model = self.model();
        let backlog = model.kept_output();
        if model.ended.is_none() {
            model.subscribers.push(sender);
        }
        (backlog, receiver)
    }

    /// Changes what is shown, and tells everybody. Who wants every byte is
    /// waited for. Answers what the terminal has to answer its program.
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
            // One that has gone misses nothing.
            let _ = subscriber.send(bytes.clone()).await;
        }
        answers
    }
}
