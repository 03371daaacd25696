//! Forwards one stream of a client.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, watch};
use vmcell_wire::{
    Capabilities, Channel, Event, Failure, FailureKind, Outcome, Output, Outputs, Stage,
    StartEvent, StreamId, WireError,
    credit::{ReceiveWindow, SendWindow},
    encode,
    limits::MAX_PAYLOAD,
};

use crate::session::{
    Closing, LinkError, Stream, StreamEvent, StreamInput, StreamOutput, outgoing::Outgoing,
};

/// The client's controls of one of its streams.
pub(super) struct ForwardedStream {
    pub(super) stdout: Arc<OutputCredit>,
    pub(super) stderr: Arc<OutputCredit>,
    cancelled: watch::Sender<bool>,
    input: mpsc::UnboundedSender<Bytes>,
    /// What the client may send. It bounds what the channel holds.
    input_window: Arc<Mutex<ReceiveWindow>>,
    /// Notified when the client ends the input.
    input_ended: Arc<Notify>,
}

impl ForwardedStream {
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    pub(super) fn input(&mut self, bytes: Bytes) -> Result<(), WireError> {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        lock(&self.input_window).arrived(count)?;
        // Fails only if the stream has ended.
        let _ = self.input.send(bytes);
        Ok(())
    }

    pub(super) fn end_input(&self) {
        self.input_ended.notify_one();
    }
}

/// The client's credit for an output.
#[derive(Debug)]
pub(super) struct OutputCredit(Mutex<(SendWindow, Option<Waker>)>);

impl OutputCredit {
    fn new(channel: Channel, size: u32) -> Self {
        Self(Mutex::new((SendWindow::new(channel, size), None)))
    }

    pub(super) fn granted(&self, bytes: u32) -> Result<(), WireError> {
        let mut this = lock(&self.0);
        this.0.granted(bytes)?;
        if let Some(waker) = this.1.take() {
            waker.wake();
        }
        Ok(())
    }
}

/// A stream of which only the outcome is left to forward.
pub(super) struct EndedStream {
    pub(super) id: StreamId,
    outcome: Result<Closing, LinkError>,
}

/// Returns the controls of a stream, and the task that forwards it until it ends.
pub(super) fn start(
    id: StreamId,
    stream: Stream,
    outgoing: Arc<Outgoing>,
    windows: Outputs,
    start_event: StartEvent,
    input_window: u32,
) -> (ForwardedStream, impl Future<Output = EndedStream>) {
    let credit =
        |channel, window: Option<u32>| Arc::new(OutputCredit::new(channel, window.unwrap_or(0)));
    let (input, inputs) = mpsc::unbounded_channel();
    let window = ReceiveWindow::new(Channel::Stdin, input_window);
    let forward = ForwardedStream {
        stdout: credit(Channel::Stdout, windows.stdout),
        stderr: credit(Channel::Stderr, windows.stderr),
        cancelled: watch::Sender::new(false),
        input,
        input_window: Arc::new(Mutex::new(window)),
        input_ended: Arc::default(),
    };
    let forwarder = Forwarder { id, outgoing };
    let outputs = [
        (windows.stdout, Channel::Stdout, forward.stdout.clone()),
        (windows.stderr, Channel::Stderr, forward.stderr.clone()),
    ];
    let [stdout, stderr] = outputs
        .map(|(window, channel, credit)| window.map(|_| (stream.output(channel), channel, credit)));
    let stdin = stream.input();
    let (window, ended) = (forward.input_window.clone(), forward.input_ended.clone());
    let cancelled = || {
        let mut cancelled = forward.cancelled.subscribe();
        async move {
            // Fails if the sender is dropped, when the client has disconnected.
            let _ = cancelled.wait_for(|cancelled| *cancelled).await;
        }
    };
    let (cancel_events, cancel_outputs) = (cancelled(), cancelled());
    let task = async move {
        let outputs = async {
            tokio::select! {
                _ = async { tokio::join!(forwarder.output(stdout), forwarder.output(stderr)) } => {}
                // A cancelled stream needs no outputs: the agent stops them too.
                () = cancel_outputs => {}
            }
        };
        let forwarding_input = forwarder.input(stdin, inputs, &window, &ended);
        let forwarding = async {
            let mut events = EventSource {
                stream,
                cancelled: Box::pin(cancel_events),
                cancelling: false,
                input_window,
            };
            // The event with the offsets precedes the outputs.
            let mut started = start_event == StartEvent::None;
            while !started {
                match forwarder.next(&mut events).await? {
                    Forwarded::OutputStart => started = true,
                    Forwarded::Other => {}
                    Forwarded::Closed(closing) => return Ok(closing),
                }
            }
            let rest = async {
                loop {
                    if let Forwarded::Closed(closing) = forwarder.next(&mut events).await? {
                        return Ok(closing);
                    }
                }
            };
            // The outcome follows the outputs.
            let (outcome, ()) = tokio::join!(rest, outputs);
            outcome
        };
        let outcome = tokio::select! {
            outcome = forwarding => outcome,
            never = forwarding_input => match never {},
        };
        EndedStream { id, outcome }
    };
    (forward, task)
}

/// The source of a stream's events other than output.
struct EventSource<C> {
    stream: Stream,
    /// Resolves when the client cancels the stream.
    cancelled: Pin<Box<C>>,
    cancelling: bool,
    input_window: u32,
}

/// What was forwarded.
enum Forwarded {
    /// The event that reports where the outputs start.
    OutputStart,
    Other,
    /// Nothing: the stream has ended with this outcome.
    Closed(Closing),
}

struct Forwarder {
    id: StreamId,
    outgoing: Arc<Outgoing>,
}

impl Forwarder {
    /// Forwards an output, within the client's credit.
    async fn output(&self, output: Option<(StreamOutput, Channel, Arc<OutputCredit>)>) {
        let Some((mut output, channel, credit)) = output else {
            return;
        };
        loop {
            let event = poll_fn(|context| {
                // A client may grant credit and then not read.
                if self.outgoing.is_full(context.waker()) {
                    return Poll::Pending;
                }
                let max = {
                    let mut credit = lock(&credit.0);
                    credit.1 = Some(context.waker().clone());
                    credit.0.available().min(MAX_PAYLOAD)
                };
                // Without credit this waits for some, or for the end.
                output.poll_next(context, max as usize)
            });
            match event.await {
                Some(Ok(StreamEvent::Data(_, bytes))) => {
                    let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    lock(&credit.0).0.take(count);
                    if let Ok(header) = encode::data_header(self.id, channel, bytes.len()) {
                        self.outgoing.data(self.outgoing.epoch(), header, bytes);
                    }
                }
                Some(Ok(StreamEvent::Gap(channel, bytes))) => {
                    let output = match channel {
                        Channel::Stderr => Output::Stderr,
                        _ => Output::Stdout,
                    };
                    self.event(&Event::Gap { output, bytes });
                }
                Some(Ok(_)) => {}
                Some(Err(_)) => return,
                None => {
                    if output.has_ended() {
                        self.send(|out, id| {
                            encode::end(out, id, channel);
                            Ok(())
                        });
                    }
                    return;
                }
            }
        }
    }

    /// Forwards input until the stream ends, which cancels this.
    async fn input(
        &self,
        stdin: StreamInput,
        mut inputs: mpsc::UnboundedReceiver<Bytes>,
        window: &Mutex<ReceiveWindow>,
        ended: &Notify,
    ) -> Infallible {
        loop {
            let bytes = tokio::select! {
                biased;
                Some(bytes) = inputs.recv() => bytes,
                () = ended.notified() => {
                    stdin.end();
                    continue;
                }
            };
            let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            // If the input is closed, the client still gets its credit back.
            stdin.write(bytes).await;
            let credit = lock(window).consumed(count);
            if let Some(credit) = credit {
                self.send(|out, id| {
                    encode::credit(out, id, Channel::Stdin, credit);
                    Ok(())
                });
            }
        }
    }

    /// Forwards the next event other than output.
    async fn next(
        &self,
        events: &mut EventSource<impl Future<Output = ()>>,
    ) -> Result<Forwarded, LinkError> {
        let event = loop {
            tokio::select! {
                event = events.stream.next_except_output() => break event?,
                () = &mut events.cancelled, if !events.cancelling => {
                    events.cancelling = true;
                    events.stream.cancel();
                }
            }
        };
        Ok(match event {
            StreamEvent::Started { id, pid } => {
                self.event(&Event::Started { id, pid });
                Forwarded::OutputStart
            }
            StreamEvent::Attached(mut attached) => {
                if let Some(stdin) = &mut attached.stdin {
                    // The client's window is that of the relay, not the agent's.
                    stdin.window = events.input_window;
                }
                self.event(&Event::Attached(attached));
                Forwarded::OutputStart
            }
            StreamEvent::Listed(entry) => {
                self.send(|out, id| encode::event_with_payload(out, id, entry.payload()));
                Forwarded::Other
            }
            StreamEvent::Connected => {
                self.event(&Event::Connected);
                Forwarded::OutputStart
            }
            StreamEvent::Closed(closing) => Forwarded::Closed(closing),
            StreamEvent::Data(..) | StreamEvent::Gap(..) => Forwarded::Other,
        })
    }

    fn event(&self, event: &Event<'_>) {
        self.send(|out, id| encode::event(out, id, event));
    }

    /// Queues a frame. It came over a link, so it fits into one frame.
    fn send(&self, encode: impl FnOnce(&mut Vec<u8>, StreamId) -> Result<(), WireError>) {
        let epoch = self.outgoing.epoch();
        let _ = self.outgoing.control(epoch, |out| encode(out, self.id));
    }
}

impl EndedStream {
    /// Writes the close with the outcome of the stream, for a client with these
    /// capabilities.
    pub(super) fn close(&self, out: &mut Vec<u8>, client: Capabilities) -> Result<(), WireError> {
        match &self.outcome {
            Ok(closing) => match closing.outcome() {
                outcome if client.contains(outcome.capability()) => {
                    encode::close_with_payload(out, self.id, closing.payload())
                }
                outcome => encode::close(out, self.id, &outcome.for_host(client)),
            },
            Err(error) => {
                let text = error.to_string();
                let failure = Failure::new(FailureKind::Other, Stage::Request, &text);
                encode::close(out, self.id, &Outcome::Failed(failure))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
