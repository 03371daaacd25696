mod events;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::{Duration, Instant},
};

use bytes::{BytesMut, buf::Limit};
use vmcell_wire::{
    Channel, Event, FailureKind, Outcome, Outputs, Position, Request, StartEvent, StreamId,
    WireError, encode, limits::MAX_PAYLOAD,
};

use super::{
    LinkError, Shared,
    event::{Closing, Listed, StreamEvent},
    inbox::{Inbox, InboxItem, MayFollow},
    outbox::Outbox,
    outgoing::Epoch,
    printed_output::thoroughness,
    reopening::{ListKey, Reopening},
};
use crate::redaction::Thoroughness;

/// The state that the reader task and the handles of a stream share.
pub(super) struct StreamState(Mutex<Inner>);

/// Prints no contents: the environment and the input of a command may be secrets.
impl fmt::Debug for StreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamState").finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    id: StreamId,
    /// The link on which the stream is open.
    epoch: Option<Epoch>,
    reopening: Reopening,
    outputs: Outputs,
    /// The event that precedes data.
    start_event: StartEvent,
    /// Whether the stream was reopened and the agent has not answered yet.
    resuming: bool,
    started: bool,
    events: VecDeque<StreamEvent>,
    pub(super) stdout: Inbox,
    pub(super) stderr: Inbox,
    pub(super) stdin: Outbox,
    /// The host has cancelled it, so the outputs may be incomplete.
    cancelled: bool,
    /// The outputs without a reader, which are discarded.
    discarding: Discarding,
    /// How secrets are searched for in the outputs. `None` if they are not what programs
    /// print.
    searched: Option<Thoroughness>,
    /// The output to read next: they alternate, so that neither starves.
    next_output: Channel,
    closing: Option<Closing>,
    link_error: Option<LinkError>,
    wakers: Wakers,
}

/// Which outputs are discarded.
#[derive(Clone, Copy, Debug, Default)]
struct Discarding {
    stdout: bool,
    stderr: bool,
}

/// The tasks that wait for a stream.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    /// For any event.
    pub(super) events: Option<Waker>,
    pub(super) stdout: Option<Waker>,
    pub(super) stderr: Option<Waker>,
    /// For credit.
    pub(super) stdin: Vec<Waker>,
}

impl Wakers {
    pub(super) fn wake_all(&mut self) {
        for waker in [&mut self.events, &mut self.stdout, &mut self.stderr] {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
        self.stdin.drain(..).for_each(Waker::wake);
    }

    fn wake_output(&mut self, channel: Channel) {
        let slot = match channel {
            Channel::Stderr => &mut self.stderr,
            _ => &mut self.stdout,
        };
        for waker in [slot, &mut self.events] {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
    }
}

/// What the reader has to do with a stream after its close.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterClose {
    /// Remove it from the table.
    Remove,
    /// Keep it: the agent had not received its request, which was sent again.
    Restarted,
}

impl StreamState {
    /// Creates the state of the stream that `frame` opens with `request`, whose outputs are
    /// returned from the offsets `first` on.
    pub(super) fn new(
        id: StreamId,
        request: &Request<'_>,
        frame: Vec<u8>,
        input_window: u32,
        [stdout, stderr]: [u64; 2],
    ) -> Self {
        // The credit of each is that of an inbox.
        let outputs = request.outputs(0);
        let start_event = request.start_event();
        let stdin = match start_event {
            // A stream that attaches gets the position of the input first.
            StartEvent::Attached => 0,
            _ if outputs == Outputs::NONE => 0,
            _ => input_window,
        };
        Self(Mutex::new(Inner {
            id,
            epoch: None,
            reopening: Reopening::of(request, frame),
            outputs,
            start_event,
            resuming: false,
            started: false,
            events: VecDeque::new(),
            stdout: Inbox::new(Channel::Stdout, stdout),
            stderr: Inbox::new(Channel::Stderr, stderr),
            stdin: Outbox::new(input_window, stdin),
            cancelled: false,
            discarding: Discarding::default(),
            searched: thoroughness(request),
            next_output: Channel::Stdout,
            closing: None,
            link_error: None,
            wakers: Wakers::default(),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `send` to send the frame that opens the stream, unless it was reopened
    /// on a new link meanwhile.
    pub(super) fn open(
        &self,
        shared: &Shared,
        send: impl FnOnce(Epoch) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let mut inner = self.lock();
        let epoch = shared.outgoing.epoch();
        if inner.epoch == Some(epoch) {
            return Ok(());
        }
        inner.epoch = Some(epoch);
        send(epoch)
    }

    /// Reopens the stream on the link of a new epoch. Returns whether it could.
    pub(super) fn reopen(&self, shared: &Shared, epoch: Epoch) -> bool {
        let mut inner = self.lock();
        // A request that was never sent is sent by `open`.
        if inner.epoch.is_none() || inner.epoch == Some(epoch) || inner.is_over() {
            return true;
        }
        let inner = &mut *inner;
        inner.epoch = Some(epoch);
        inner.resuming = matches!(
            inner.reopening,
            Reopening::Resume { .. }
                | Reopening::Reattach { .. }
                | Reopening::ResumeLog { .. }
                | Reopening::Remove(_)
        );
        inner.stdin.pause();
        let (stdout, stderr) = (inner.stdout.resume(), inner.stderr.resume());
        let mut reopened = false;
        let sent = shared.outgoing.request(epoch, |out| {
            reopened = inner.reopening.reopen(out, inner.id, stdout, stderr)?;
            if reopened && inner.cancelled {
                encode::cancel(out, inner.id);
            }
            Ok(())
        });
        sent.is_ok() && reopened
    }

    /// Handles an event, which was decoded from `payload`.
    pub(super) fn event(
        &self,
        shared: &Shared,
        event: Event<'_>,
        payload: &[u8],
    ) -> Result<(), WireError> {
        let mut inner = self.lock();
        match event {
            Event::Started { id, pid } => inner.started(id, pid)?,
            Event::Attached(attached) => inner.attached(shared, attached)?,
            Event::Gap { output, bytes } => {
                let channel = match output {
                    vmcell_wire::Output::Stdout => Channel::Stdout,
                    vmcell_wire::Output::Stderr => Channel::Stderr,
                };
                inner.inbox(channel)?.gap(bytes)?;
                inner.wakers.wake_output(channel);
            }
            Event::Connected => inner.connected()?,
            // From a newer agent, which should not have sent it.
            Event::Unknown => {}
            _ => {
                let key = ListKey::of(&event).ok_or(WireError::Malformed)?;
                inner.listed(key, Listed::new(payload))?;
            }
        }
        inner.wake_events();
        Ok(())
    }

    pub(super) fn data(
        &self,
        shared: &Shared,
        channel: Channel,
        bytes: &[u8],
    ) -> Result<(), WireError> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let discard = inner.discards(channel);
        if !discard {
            inner.mask(shared, channel)?;
        }
        inner.inbox(channel)?.push(bytes)?;
        if !discard {
            inner.wakers.wake_output(channel);
            return Ok(());
        }
        while let Some(taken) = inner.inbox(channel)?.take(usize::MAX, MayFollow::No) {
            inner.return_credit(shared, channel, &taken);
        }
        Ok(())
    }

    /// Returns whether bytes of the channel can be read directly into its inbox.
    pub(super) fn accepts_direct_read(&self, channel: Channel) -> bool {
        let inner = self.lock();
        !inner.discards(channel) && inner.carries(channel)
    }

    pub(super) fn fill(
        &self,
        shared: &Shared,
        channel: Channel,
        max: usize,
        read: impl FnOnce(&mut Limit<&mut BytesMut>) -> Result<usize, LinkError>,
    ) -> Result<usize, LinkError> {
        let mut inner = self.lock();
        inner.mask(shared, channel)?;
        let count = inner.inbox(channel)?.fill(max, read)?;
        inner.wakers.wake_output(channel);
        Ok(count)
    }

    pub(super) fn end(&self, channel: Channel) -> Result<(), WireError> {
        let mut inner = self.lock();
        inner.inbox(channel)?.end();
        inner.wakers.wake_output(channel);
        Ok(())
    }

    pub(super) fn credit(&self, bytes: u32) -> Result<(), WireError> {
        let mut inner = self.lock();
        inner.stdin.granted(bytes)?;
        inner.wakers.stdin.drain(..).for_each(Waker::wake);
        Ok(())
    }

    pub(super) fn close(
        &self,
        shared: &Shared,
        outcome: &Outcome<'_>,
        payload: &[u8],
    ) -> AfterClose {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if let (
            Outcome::Failed(failure),
            true,
            Reopening::Resume {
                start: Some(frame), ..
            },
            Some(epoch),
        ) = (outcome, inner.resuming, &inner.reopening, inner.epoch)
            && failure.kind == FailureKind::NotFound
            && !inner.cancelled
        {
            // The link broke before the request arrived.
            inner.resuming = false;
            let from_the_start = Position {
                offset: 0,
                window: shared.input_window,
            };
            let restarted = inner.stdin.resume(from_the_start).and_then(|()| {
                shared.outgoing.request(epoch, |out| {
                    encode::ack(out, inner.id);
                    out.extend_from_slice(frame);
                    Ok(())
                })
            });
            if restarted.is_ok() {
                inner.resend_input(shared);
                return AfterClose::Restarted;
            }
        }
        if let Some(epoch) = inner.epoch {
            shared.outgoing.ack(epoch, inner.id);
        }
        let removed_before = inner.resuming
            && matches!(inner.reopening, Reopening::Remove(_))
            && matches!(outcome, Outcome::Failed(failure) if failure.kind == FailureKind::NotFound);
        inner.closing = Some(match removed_before {
            // The first request succeeded, and its answer was lost.
            true => Closing::done(),
            false => Closing::new(payload),
        });
        inner.wakers.wake_all();
        AfterClose::Remove
    }

    pub(super) fn fail(&self, error: LinkError) {
        let mut inner = self.lock();
        inner.link_error = Some(error);
        inner.wakers.wake_all();
    }
}

impl Inner {
    /// Takes the next event of any kind.
    pub(super) fn take_next(&mut self, shared: &Shared) -> Option<Result<StreamEvent, LinkError>> {
        if let Some(event) = self.events.pop_front() {
            return Some(Ok(event));
        }
        let outputs = match self.next_output {
            Channel::Stderr => [Channel::Stderr, Channel::Stdout],
            _ => [Channel::Stdout, Channel::Stderr],
        };
        for (channel, other) in [(outputs[0], outputs[1]), (outputs[1], outputs[0])] {
            if let Some(event) = self.take_output(shared, channel, usize::MAX) {
                self.next_output = other;
                return Some(Ok(event));
            }
        }
        self.take_end()
    }

    /// Takes the next data or gap of one output.
    pub(super) fn take_output(
        &mut self,
        shared: &Shared,
        channel: Channel,
        max: usize,
    ) -> Option<StreamEvent> {
        let more = match self.is_over() || self.discards(channel) {
            true => MayFollow::No,
            false => MayFollow::Yes,
        };
        self.mask(shared, channel).ok()?;
        loop {
            let taken = self.inbox(channel).ok()?.take(max, more)?;
            self.return_credit(shared, channel, &taken);
            return Some(match taken {
                InboxItem::Bytes(bytes, _) => StreamEvent::Data(channel, bytes),
                InboxItem::Gap(bytes) => StreamEvent::Gap(channel, bytes),
                InboxItem::Skipped(_) => continue,
            });
        }
    }

    /// Masks the secrets of the session in an output.
    fn mask(&mut self, shared: &Shared, channel: Channel) -> Result<(), WireError> {
        if let Some(thoroughness) = self.searched
            && let Some(secrets) = shared.secrets.set()
        {
            self.inbox(channel)?.mask(&secrets, thoroughness);
        }
        Ok(())
    }

    /// Returns how the stream ended, or `None` while it is open.
    pub(super) fn take_end(&self) -> Option<Result<StreamEvent, LinkError>> {
        if let Some(closing) = &self.closing {
            return Some(match self.check_complete(closing) {
                Ok(()) => Ok(StreamEvent::Closed(closing.clone())),
                Err(error) => Err(LinkError::Violation(error)),
            });
        }
        self.link_error.map(Err)
    }

    /// Returns how long an output is still held back that may be the beginning of a secret.
    pub(super) fn held_for(&self, channel: Channel) -> Option<Duration> {
        let inbox = match channel {
            Channel::Stderr => &self.stderr,
            _ => &self.stdout,
        };
        inbox.held_for(Instant::now())
    }

    pub(super) fn take_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns whether an output is read completely and nothing can follow.
    pub(super) fn output_is_over(&self, channel: Channel) -> bool {
        let inbox = match channel {
            Channel::Stderr => &self.stderr,
            _ => &self.stdout,
        };
        inbox.is_empty() && (inbox.has_ended() || self.is_over())
    }

    /// Returns whether the agent has reported the end of an output.
    pub(super) fn output_has_ended(&self, channel: Channel) -> bool {
        match channel {
            Channel::Stderr => self.stderr.has_ended(),
            _ => self.stdout.has_ended(),
        }
    }

    /// Returns how many bytes of memory its outputs and events have.
    #[cfg(feature = "fuzzing")]
    pub(super) fn memory_used(&self) -> usize {
        let events = self.events.capacity() * size_of::<StreamEvent>();
        self.stdout.memory_used() + self.stderr.memory_used() + events
    }

    pub(super) fn is_over(&self) -> bool {
        self.closing.is_some() || self.link_error.is_some()
    }

    pub(super) fn link_error(&self) -> Option<LinkError> {
        self.link_error
    }

    pub(super) fn wakers(&mut self) -> &mut Wakers {
        &mut self.wakers
    }

    /// Asks the agent to end the stream.
    pub(super) fn cancel(&mut self, shared: &Shared) {
        if self.is_over() || std::mem::replace(&mut self.cancelled, true) {
            return;
        }
        self.send(shared, encode::cancel);
    }

    /// Discards what has arrived on an output, and what will.
    pub(super) fn discard(&mut self, shared: &Shared, channel: Channel) {
        match channel {
            Channel::Stdin => return,
            Channel::Stdout => self.discarding.stdout = true,
            Channel::Stderr => self.discarding.stderr = true,
        }
        while self.take_output(shared, channel, usize::MAX).is_some() {}
    }

    /// Sends input, as much as the agent has room for. Returns whether it sent any.
    pub(super) fn send_input(&mut self, shared: &Shared, bytes: &mut bytes::Bytes) -> bool {
        let payload = self.stdin.send(bytes, MAX_PAYLOAD);
        let sent = !payload.is_empty();
        self.send_data(shared, payload);
        sent
    }

    /// Ends the input.
    pub(super) fn end_input(&mut self, shared: &Shared) {
        if self.stdin.has_ended() || self.is_over() {
            return;
        }
        self.stdin.end();
        if !self.resuming {
            self.send(shared, |out, id| encode::end(out, id, Channel::Stdin));
        }
    }

    /// Adds a frame of a fixed size, which always fits.
    fn send(&self, shared: &Shared, write: impl FnOnce(&mut Vec<u8>, StreamId)) {
        if let Some(epoch) = self.epoch {
            shared.control(epoch, |out| write(out, self.id));
        }
    }

    fn send_data(&self, shared: &Shared, payload: bytes::Bytes) {
        let header = encode::data_header(self.id, Channel::Stdin, payload.len());
        if let (Some(epoch), Ok(header)) = (self.epoch, header) {
            shared.outgoing.data(epoch, header, payload);
        }
    }

    fn resend_input(&mut self, shared: &Shared) {
        for payload in self.stdin.unacknowledged() {
            self.send_data(shared, payload);
        }
        if self.stdin.has_ended() {
            self.send(shared, |out, id| encode::end(out, id, Channel::Stdin));
        }
        self.wakers.stdin.drain(..).for_each(Waker::wake);
    }

    fn return_credit(&self, shared: &Shared, channel: Channel, taken: &InboxItem) {
        if let InboxItem::Bytes(_, Some(credit)) | InboxItem::Skipped(Some(credit)) = taken {
            self.send(shared, |out, id| encode::credit(out, id, channel, *credit));
        }
    }

    fn inbox(&mut self, channel: Channel) -> Result<&mut Inbox, WireError> {
        match channel {
            Channel::Stdout if self.outputs.stdout.is_some() => Ok(&mut self.stdout),
            Channel::Stderr if self.outputs.stderr.is_some() => Ok(&mut self.stderr),
            _ => Err(WireError::Malformed),
        }
    }

    fn carries(&self, channel: Channel) -> bool {
        match channel {
            Channel::Stdin => false,
            Channel::Stdout => self.outputs.stdout.is_some(),
            Channel::Stderr => self.outputs.stderr.is_some(),
        }
    }

    fn discards(&self, channel: Channel) -> bool {
        match channel {
            Channel::Stdin => false,
            Channel::Stdout => self.discarding.stdout,
            Channel::Stderr => self.discarding.stderr,
        }
    }

    fn wake_events(&mut self) {
        if let Some(waker) = self.wakers.events.take() {
            waker.wake();
        }
    }

    /// Checks that as many bytes have arrived as the exit says were printed, so
    /// that truncated output does not pass for complete output.
    fn check_complete(&self, closing: &Closing) -> Result<(), WireError> {
        let Outcome::Exited(exit) = closing.outcome() else {
            return Ok(());
        };
        let stdout = self.stdout.arrived() == exit.stdout_bytes || self.outputs.stdout.is_none();
        let stderr = self.stderr.arrived() == exit.stderr_bytes || self.outputs.stderr.is_none();
        // A cancelled stream may have incomplete outputs.
        if self.cancelled || (stdout && stderr) {
            return Ok(());
        }
        Err(WireError::Malformed)
    }
}
