use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
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
        poll_fn(|context| self.poll_bytes(context)).await
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.backlog.is_empty() {
            return Poll::Ready(Some(std::mem::take(&mut self.backlog)));
        }
        self.live.poll_recv(context)
    }
}

impl Stream for Follow {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll_bytes(context)
    }
}
