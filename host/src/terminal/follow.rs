use bytes::Bytes;
use tokio::sync::mpsc;

/// Every byte that a terminal prints: see
/// [`Terminal::follow`](super::Terminal::follow).
#[derive(Debug)]
pub struct Follow {
    past: Bytes,
    future: mpsc::Receiver<Bytes>,
}

impl Follow {
    pub(super) fn new((past, future): (Bytes, mpsc::Receiver<Bytes>)) -> Self {
        Self { past, future }
    }

    /// The next bytes. None: the terminal has ended, or its VM has.
    ///
    /// # Cancel safety
    /// Cancel safe: no byte is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.past.is_empty() {
            return Some(std::mem::take(&mut self.past));
        }
        self.future.recv().await
    }
}
