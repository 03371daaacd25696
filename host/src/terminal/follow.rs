use bytes::Bytes;
use tokio::sync::mpsc;

/// A stream of every byte that a terminal prints: see
/// [`Terminal::follow`](super::Terminal::follow).
#[derive(Debug)]
pub struct Follow {
    backlog: Bytes,
    live: mpsc::Receiver<Bytes>,
}

impl Follow {
    pub(super) fn new((backlog, live): (Bytes, mpsc::Receiver<Bytes>)) -> Self {
        Self { backlog, live }
    }

    /// Returns the next bytes, or `None` when the terminal or its VM has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: no byte is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.backlog.is_empty() {
            return Some(std::mem::take(&mut self.backlog));
        }
        self.live.recv().await
    }
}
