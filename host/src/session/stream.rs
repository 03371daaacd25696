use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut, buf::Limit};
use tokio::sync::Notify;
use vmcell_wire::{
    Channel, Event, Exit, Outcome, StreamId, WireError, credit::SendWindow, encode,
    limits::MAX_PAYLOAD,
};

use super::{Lost, OpenError, Shared, inbox::Inbox};
use crate::process::ExecFailure;

/// The host's end of a stream. Dropping it cancels the stream.
#[derive(Debug)]
pub(crate) struct Stream {
    id: StreamId,
    state: Arc<StreamState>,
    shared: Arc<Shared>,
}

/// The way into a stream. It keeps nothing alive.
#[derive(Clone, Debug)]
pub(crate) struct StreamInput {
    id: StreamId,
    state: Arc<StreamState>,
    shared: Arc<Shared>,
}

/// What comes on a stream.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Started { pid: u32 },
    Data(Channel, Bytes),
    Closed(Closing),
}

/// How a stream ended.
#[derive(Clone, Debug)]
pub(crate) enum Closing {
    Exited(Exit),
    Failed(ExecFailure),
    Pong,
    PoweringOff,
    /// Something that this version does not know.
    Unknown,
}

/// What the reader task and the handle of a stream share.
#[derive(Debug)]
pub(super) struct StreamState {
    inner: Mutex<Inner>,
    /// Something came for the reader of the stream.
    changed: Notify,
    /// There is credit for standard input, or no more use in waiting for it.
    input_changed: Notify,
}

#[derive(Debug)]
struct Inner {
    started: Started,
    stdout: Inbox,
    stderr: Inbox,
    stdin: SendWindow,
    stdin_ended: bool,
    /// The host has asked for the end: not everything need come.
    cancelled: bool,
    /// The output that is looked at first, so that neither hides the other.
    next_output: Channel,
    closing: Option<Closing>,
    lost: Option<Lost>,
    /// The handle is gone: what comes is dropped.
    abandoned: bool,
}

/// The one event that may come once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Started {
    NotYet,
    Untold(u32),
    Told,
}

impl Stream {
    pub(super) fn register(shared: Arc<Shared>, peer_window: u32) -> Result<Self, OpenError> {
        let state = Arc::new(StreamState {
            inner: Mutex::new(Inner {
                started: Started::NotYet,
                stdout: Inbox::new(Channel::Stdout),
                stderr: Inbox::new(Channel::Stderr),
                stdin: SendWindow::new(Channel::Stdin, peer_window),
                stdin_ended: false,
                cancelled: false,
                next_output: Channel::Stdout,
                closing: None,
                lost: None,
                abandoned: false,
            }),
            changed: Notify::new(),
            input_changed: Notify::new(),
        });
        let id = shared.table.insert(state.clone())?;
        // The link may have been lost between the caller's look and now; then
        // nobody will tell this stream.
        if let Some(lost) = *shared.lost.borrow() {
            shared.table.remove(id);
            return Err(OpenError::Lost(lost));
        }
        Ok(Self { id, state, shared })
    }

    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// Forgets a stream that the agent was never told of.
    pub(super) fn withdraw(self) {
        self.shared.table.remove(self.id);
        self.state.fail(Lost::Closed);
    }

    /// Waits for the next thing that comes. After [`StreamEvent::Closed`]
    /// there is only that.
    ///
    /// Cancel safe: nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<StreamEvent, Lost> {
        loop {
            if let Some(event) = self.try_next() {
                return event;
            }
            self.state.changed.notified().await;
        }
    }

    /// The way to its standard input.
    pub(crate) fn input(&self) -> StreamInput {
        StreamInput {
            id: self.id,
            state: self.state.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Asks the agent to end the stream at once. Its close still comes.
    pub(crate) fn cancel(&self) {
        let mut inner = self.state.lock();
        if inner.closing.is_none() {
            inner.cancelled = true;
            drop(inner);
            self.shared.control(|out| encode::cancel(out, self.id));
        }
    }

    fn try_next(&mut self) -> Option<Result<StreamEvent, Lost>> {
        let mut inner = self.state.lock();
        if let Started::Untold(pid) = inner.started {
            inner.started = Started::Told;
            return Some(Ok(StreamEvent::Started { pid }));
        }
        let outputs = match inner.next_output {
            Channel::Stderr => [Channel::Stderr, Channel::Stdout],
            _ => [Channel::Stdout, Channel::Stderr],
        };
        for (channel, other) in [(outputs[0], outputs[1]), (outputs[1], outputs[0])] {
            let taken = inner.inbox(channel).and_then(Inbox::take);
            if let Some((bytes, credit)) = taken {
                inner.next_output = other;
                drop(inner);
                if let Some(credit) = credit {
                    self.shared
                        .control(|out| encode::credit(out, self.id, channel, credit));
                }
                return Some(Ok(StreamEvent::Data(channel, bytes)));
            }
        }
        if let Some(closing) = inner.closing.clone() {
            return Some(match inner.check_complete(&closing) {
                Ok(()) => Ok(StreamEvent::Closed(closing)),
                Err(error) => Err(Lost::Violation(error)),
            });
        }
        inner.lost.map(Err)
    }
}

impl StreamInput {
    /// Writes to standard input; waits until the guest has room for it. False:
    /// nobody reads it any more.
    ///
    /// Not cancel safe: a part may have been sent if the future is dropped.
    pub(crate) async fn write(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            // Registered before the look, so that no change is missed.
            let mut drained = std::pin::pin!(self.shared.outgoing.drained());
            drained.as_mut().enable();
            let wanted = match self.shared.outgoing.is_full() {
                true => 0,
                false => u32::try_from(bytes.len())
                    .unwrap_or(u32::MAX)
                    .min(MAX_PAYLOAD),
            };
            match self.state.take_input_credit(wanted) {
                None => return false,
                Some(0) => tokio::select! {
                    () = self.state.input_changed.notified() => {}
                    () = drained => {}
                },
                Some(allowed) => {
                    let payload = bytes.split_to(allowed as usize);
                    let header = encode::data_header(self.id, Channel::Stdin, payload.len());
                    match header {
                        Ok(header) => self.shared.outgoing.data(header, payload),
                        Err(_) => return false,
                    }
                }
            }
        }
        true
    }

    /// Says that standard input ends here.
    pub(crate) fn end(&self) {
        let mut inner = self.state.lock();
        if !inner.stdin_ended && inner.closing.is_none() {
            inner.stdin_ended = true;
            drop(inner);
            self.shared
                .control(|out| encode::end(out, self.id, Channel::Stdin));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut inner = self.state.lock();
        let open = inner.closing.is_none() && inner.lost.is_none();
        inner.abandoned = true;
        inner.stdout = Inbox::new(Channel::Stdout);
        inner.stderr = Inbox::new(Channel::Stderr);
        drop(inner);
        if open {
            self.cancel();
        }
    }
}

impl StreamState {
    /// Whether somebody will read what comes.
    pub(super) fn is_wanted(&self) -> bool {
        !self.lock().abandoned
    }

    pub(super) fn event(&self, event: Event) -> Result<(), WireError> {
        let mut inner = self.lock();
        match event {
            Event::Started { pid } if inner.started == Started::NotYet => {
                inner.started = Started::Untold(pid);
            }
            Event::Started { .. } => return Err(WireError::Malformed),
            // Only sent to hosts that announced that they know it.
            _ => return Err(WireError::Malformed),
        }
        self.changed.notify_one();
        Ok(())
    }

    pub(super) fn data(&self, channel: Channel, bytes: &[u8]) -> Result<(), WireError> {
        let mut inner = self.lock();
        let discard = inner.abandoned;
        let inbox = inner.inbox(channel).ok_or(WireError::Malformed)?;
        if !discard {
            inbox.push(bytes)?;
            self.changed.notify_one();
        }
        Ok(())
    }

    pub(super) fn fill(
        &self,
        channel: Channel,
        most: usize,
        read: impl FnOnce(&mut Limit<&mut BytesMut>) -> Result<usize, Lost>,
    ) -> Result<usize, Lost> {
        let mut inner = self.lock();
        let inbox = inner
            .inbox(channel)
            .ok_or(Lost::Violation(WireError::Malformed))?;
        let count = inbox.fill(most, read)?;
        self.changed.notify_one();
        Ok(count)
    }

    pub(super) fn end(&self, channel: Channel) -> Result<(), WireError> {
        let mut inner = self.lock();
        inner.inbox(channel).ok_or(WireError::Malformed)?.end();
        Ok(())
    }

    pub(super) fn credit(&self, bytes: u32) -> Result<(), WireError> {
        self.lock().stdin.granted(bytes)?;
        self.input_changed.notify_one();
        Ok(())
    }

    pub(super) fn close(&self, outcome: &Outcome<'_>) {
        self.lock().closing = Some(match outcome {
            Outcome::Exited(exit) => Closing::Exited(*exit),
            Outcome::Failed(failure) => Closing::Failed(ExecFailure::from_wire(failure)),
            Outcome::Pong => Closing::Pong,
            Outcome::PoweringOff => Closing::PoweringOff,
            _ => Closing::Unknown,
        });
        self.changed.notify_one();
        self.input_changed.notify_one();
    }

    pub(super) fn fail(&self, lost: Lost) {
        self.lock().lost = Some(lost);
        self.changed.notify_one();
        self.input_changed.notify_one();
    }

    /// Takes credit for up to `wanted` bytes of input. None: no more input.
    fn take_input_credit(&self, wanted: u32) -> Option<u32> {
        let mut inner = self.lock();
        let over = inner.stdin_ended || inner.closing.is_some() || inner.lost.is_some();
        (!over).then(|| inner.stdin.take(wanted))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn inbox(&mut self, channel: Channel) -> Option<&mut Inbox> {
        match channel {
            Channel::Stdin => None,
            Channel::Stdout => Some(&mut self.stdout),
            Channel::Stderr => Some(&mut self.stderr),
        }
    }

    /// An exit says how much was printed. Fewer bytes than that must not pass
    /// for everything.
    fn check_complete(&self, closing: &Closing) -> Result<(), WireError> {
        let Closing::Exited(exit) = closing else {
            return Ok(());
        };
        let complete = self.stdout.received() == exit.stdout_bytes
            && self.stderr.received() == exit.stderr_bytes;
        // A stream that was cancelled has given its outputs up.
        if !complete && !self.cancelled {
            return Err(WireError::Malformed);
        }
        Ok(())
    }
}
