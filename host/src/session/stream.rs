use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Sleep, sleep};
use vmcell_wire::{Channel, StreamId};

use super::{LinkError, Shared, event::StreamEvent, state::StreamState};

/// The host's end of a stream. Dropping it cancels the stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) id: StreamId,
    pub(super) state: Arc<StreamState>,
    pub(super) shared: Arc<Shared>,
    pub(super) hold_timer: HoldTimer,
}

/// One output of a stream. It does not keep the stream open. Dropping it discards
/// the output.
#[derive(Debug)]
pub(crate) struct StreamOutput {
    channel: Channel,
    state: Arc<StreamState>,
    shared: Arc<Shared>,
    hold_timer: HoldTimer,
}

/// Waits until output is not held back any more that may be the beginning of a secret.
#[derive(Debug, Default)]
pub(super) struct HoldTimer(Option<Pin<Box<Sleep>>>);

impl HoldTimer {
    /// Returns whether that may be so now. `held_for` is how long it is held back, if any is.
    fn poll(&mut self, context: &mut Context<'_>, held_for: Option<Duration>) -> Poll<()> {
        let Some(time) = held_for else {
            return Poll::Pending;
        };
        // One that was set for what is read already elapses earlier. To set a timer can wake
        // another thread, and most of what is held back is read within microseconds.
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(timer.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(())
    }
}

/// The input of a stream. It does not keep the stream open.
#[derive(Clone, Debug)]
pub(crate) struct StreamInput {
    state: Arc<StreamState>,
    shared: Arc<Shared>,
}

impl Stream {
    /// Waits for the next event. After [`StreamEvent::Closed`] it returns that
    /// again.
    ///
    /// Cancel safe: no event is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<StreamEvent, LinkError> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), to be polled.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamEvent, LinkError>> {
        loop {
            let mut inner = self.state.lock();
            if let Some(event) = inner.take_next(&self.shared) {
                return Poll::Ready(event);
            }
            inner.wakers().events = Some(context.waker().clone());
            let outputs = [Channel::Stdout, Channel::Stderr];
            let held_for = outputs
                .into_iter()
                .filter_map(|it| inner.held_for(it))
                .min();
            drop(inner);
            ready!(self.hold_timer.poll(context, held_for));
        }
    }

    /// As [`next`](Self::next), without data and gaps of the outputs.
    pub(crate) async fn next_except_output(&mut self) -> Result<StreamEvent, LinkError> {
        std::future::poll_fn(|context| self.poll_next_except_output(context)).await
    }

    /// As [`poll_next`](Self::poll_next), without data and gaps of the outputs.
    pub(crate) fn poll_next_except_output(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamEvent, LinkError>> {
        let mut inner = self.state.lock();
        if let Some(event) = inner.take_event() {
            return Poll::Ready(Ok(event));
        }
        match inner.take_end() {
            Some(end) => Poll::Ready(end),
            None => {
                inner.wakers().events = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Returns a handle to its standard input.
    pub(crate) fn input(&self) -> StreamInput {
        StreamInput {
            state: self.state.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Returns a handle to one of its outputs, to be read separately.
    pub(crate) fn output(&self, channel: Channel) -> StreamOutput {
        StreamOutput {
            channel,
            state: self.state.clone(),
            shared: self.shared.clone(),
            hold_timer: HoldTimer::default(),
        }
    }

    /// Returns the offset of the next byte to read of an output.
    pub(crate) fn offset(&self, channel: Channel) -> u64 {
        let inner = self.state.lock();
        match channel {
            Channel::Stderr => inner.stderr.offset(),
            _ => inner.stdout.offset(),
        }
    }

    /// Asks the agent to end the stream at once. The close event still follows.
    pub(crate) fn cancel(&self) {
        self.state.lock().cancel(&self.shared);
    }

    /// Removes a stream that was not opened at the agent.
    pub(super) fn withdraw(self) {
        self.shared.table.remove(self.id);
        self.state.fail(LinkError::Closed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut inner = self.state.lock();
        if inner.is_over() {
            // Handles of outputs may still read what has arrived.
            return;
        }
        inner.cancel(&self.shared);
        for channel in [Channel::Stdout, Channel::Stderr] {
            inner.discard(&self.shared, channel);
        }
    }
}

impl StreamOutput {
    /// Returns the next data, up to `max` bytes, or gap. `None` after the end.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<StreamEvent, LinkError>>> {
        loop {
            let mut inner = self.state.lock();
            if let Some(event) = inner.take_output(&self.shared, self.channel, max) {
                return Poll::Ready(Some(Ok(event)));
            }
            if inner.output_is_over(self.channel) {
                let complete = inner.output_has_ended(self.channel);
                return Poll::Ready(inner.link_error().filter(|_| !complete).map(Err));
            }
            let slot = match self.channel {
                Channel::Stderr => &mut inner.wakers().stderr,
                _ => &mut inner.wakers().stdout,
            };
            *slot = Some(context.waker().clone());
            let held_for = inner.held_for(self.channel);
            drop(inner);
            ready!(self.hold_timer.poll(context, held_for));
        }
    }
}

impl StreamOutput {
    /// Returns whether the agent has reported the end of the output.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().output_has_ended(self.channel)
    }
}

impl Drop for StreamOutput {
    fn drop(&mut self) {
        self.state.lock().discard(&self.shared, self.channel);
    }
}

/// How many bytes are copied at a time.
const MAX_COPY: usize = 64 * 1024;

impl StreamInput {
    /// Sends the front of `bytes`, as much as the guest has room for, at least
    /// one byte. Returns `false` if the input is closed.
    pub(crate) fn poll_write(&self, context: &mut Context<'_>, bytes: &mut Bytes) -> Poll<bool> {
        let mut inner = self.state.lock();
        if inner.stdin.has_ended() || inner.is_over() {
            return Poll::Ready(false);
        }
        if bytes.is_empty() {
            return Poll::Ready(true);
        }
        let full = self.shared.outgoing.is_full(context.waker());
        if !full && inner.send_input(&self.shared, bytes) {
            return Poll::Ready(true);
        }
        // Woken by credit and by the end of the stream.
        let wakers = &mut inner.wakers().stdin;
        if !wakers.iter().any(|other| other.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// As [`poll_write`](Self::poll_write), with a copy of the front of `bytes`.
    /// Fails with `BrokenPipe` if the input is closed.
    pub(crate) fn poll_copy(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut chunk = Bytes::copy_from_slice(&bytes[..bytes.len().min(MAX_COPY)]);
        let length = chunk.len();
        Poll::Ready(match ready!(self.poll_write(context, &mut chunk)) {
            true => Ok(length - chunk.len()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    /// Writes to standard input, and waits until the guest has room for it.
    /// Returns `false` if the input is closed.
    ///
    /// Not cancel safe: a part may have been sent if the future is dropped.
    pub(crate) async fn write(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let open = std::future::poll_fn(|context| self.poll_write(context, &mut bytes)).await;
            if !open {
                return false;
            }
        }
        true
    }

    /// Ends standard input.
    pub(crate) fn end(&self) {
        self.state.lock().end_input(&self.shared);
    }
}
