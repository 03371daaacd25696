use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::{
    model::{Model, Over},
    records::Records,
    redaction::Passed,
};

/// What the handles of a terminal and its reader share.
pub(super) struct Shared {
    model: Mutex<Model>,
    /// Counts what has happened.
    news: watch::Sender<u64>,
    pub(super) records: Option<Records>,
}

/// How many pieces a follower may be behind before the terminal waits for it.
const FOLLOWER_PIECES: usize = 16;

impl Shared {
    pub(super) fn new(model: Model, records: Option<Records>) -> Self {
        Self {
            model: Mutex::new(model),
            news: watch::Sender::new(0),
            records,
        }
    }

    /// Never held while something is waited for.
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when something happens. What has happened before is not told.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub(super) fn changed(&self) {
        self.news
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Nothing more will come.
    pub(super) async fn end(&self, over: Over) {
        if let Some(records) = &self.records {
            records.ended(over).await;
        }
        {
            let mut model = self.model();
            model.over = Some(over);
            model.followers.clear();
        }
        self.changed();
    }

    /// What was printed as far as it is kept here, and all that follows.
    pub(super) fn follow(&self) -> (Bytes, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(FOLLOWER_PIECES);
        // Both under one lock, so that nothing comes twice or not at all.
        let mut model = self.model();
        let past = model.kept();
        if model.over.is_none() {
            model.followers.push(sender);
        }
        (past, receiver)
    }

    /// Changes what is shown, and tells everybody. Who wants every byte is
    /// waited for. Answers what the terminal has to answer its program.
    pub(super) async fn show(&self, change: impl FnOnce(&mut Model) -> Passed) -> Vec<u8> {
        let (passed, answers, followers) = {
            let mut model = self.model();
            let passed = change(&mut model);
            model.followers.retain(|follower| !follower.is_closed());
            let answers = model.emulator.take_replies();
            (passed, answers, model.followers.clone())
        };
        let bytes = passed.bytes.clone();
        if bytes.is_empty() && passed.late.is_empty() {
            return answers;
        }
        self.changed();
        if let Some(records) = &self.records {
            records.printed(passed).await;
        }
        for follower in followers {
            // One that has gone misses nothing.
            let _ = follower.send(bytes.clone()).await;
        }
        answers
    }
}
