//! One stream of a visitor, moved along.

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
    Channel, Event, Failure, FailureKind, Outcome, Output, Stage, StreamId, WireError,
    credit::{ReceiveWindow, SendWindow},
    encode,
    limits::MAX_PAYLOAD,
};

use crate::session::{
    Closing, LinkError, Stream, StreamEvent, StreamInput, StreamOutput, outgoing::Outgoing,
};

/// What the visitor may be sent at first, on each output that it asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    pub(super) stdout: Option<u32>,
    pub(super) stderr: Option<u32>,
}

impl Windows {
    pub(super) fn stdout(window: u32) -> Self {
        Self {
            stdout: Some(window),
            stderr: None,
        }
    }

    pub(super) fn both(window: u32) -> Self {
        Self {
            stdout: Some(window),
            stderr: Some(window),
        }
    }
}

/// When the outputs of a stream begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the stream.
    AtOnce,
    /// Where an event says.
    WhenTold,
}

/// What the visitor can do to one of its streams.
pub(super) struct Forward {
    pub(super) stdout: Arc<Credit>,
    pub(super) stderr: Arc<Credit>,
    cancelled: watch::Sender<bool>,
    input: mpsc::UnboundedSender<Bytes>,
    /// What the visitor may send. The channel holds no more than this.
    input_window: Arc<Mutex<ReceiveWindow>>,
    /// No more will follow.
    input_ended: Arc<Notify>,
}

impl Forward {
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    pub(super) fn input(&mut self, bytes: Bytes) -> Result<(), WireError> {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        lock(&self.input_window).arrived(count)?;
        // Nobody reads it if the stream is over; then it does not matter.
        let _ = self.input.send(bytes);
        Ok(())
    }

    pub(super) fn end_input(&self) {
        self.input_ended.notify_one();
    }
}

/// What a visitor may be sent on an output.
#[derive(Debug)]
pub(super) struct Credit(Mutex<(SendWindow, Option<Waker>)>);

impl Credit {
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

/// A stream that has nothing more to tell but how it ended.
pub(super) struct Ended {
    pub(super) id: StreamId,
    outcome: Result<Closing, LinkError>,
}

/// Begins to move a stream along. The task ends with it.
pub(super) fn start(
    id: StreamId,
    stream: Stream,
    outgoing: Arc<Outgoing>,
    windows: Windows,
    begin: Begin,
    input_window: u32,
) -> (Forward, impl Future<Output = Ended>) {
    let credit = |channel, window: Option<u32>| Arc::new(Credit::new(channel, window.unwrap_or(0)));
    let (input, inputs) = mpsc::unbounded_channel();
    let window = ReceiveWindow::new(Channel::Stdin, input_window);
    let forward = Forward {
        stdout: credit(Channel::Stdout, windows.stdout),
        stderr: credit(Channel::Stderr, windows.stderr),
        cancelled: watch::Sender::new(false),
        input,
        input_window: Arc::new(Mutex::new(window)),
        input_ended: Arc::default(),
    };
    let mover = Mover { id, outgoing };
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
            // Without a sender the visit is over.
            let _ = cancelled.wait_for(|cancelled| *cancelled).await;
        }
    };
    let (no_events, no_outputs) = (cancelled(), cancelled());
    let task = async move {
        let outputs = async {
            tokio::select! {
                _ = async { tokio::join!(mover.output(stdout), mover.output(stderr)) } => {}
                // Who cancels does without them: the agent sends no more either.
                () = no_outputs => {}
            }
        };
        let feeding = mover.input(stdin, inputs, &window, &ended);
        let moving = async {
            let mut events = Events {
                stream,
                cancelled: Box::pin(no_events),
                cancelling: false,
                input_window,
            };
            // Where the outputs begin comes before what is on them.
            let mut begun = begin == Begin::AtOnce;
            while !begun {
                match mover.next(&mut events).await? {
                    Moved::Begun => begun = true,
                    Moved::Other => {}
                    Moved::Over(closing) => return Ok(closing),
                }
            }
            let rest = async {
                loop {
                    if let Moved::Over(closing) = mover.next(&mut events).await? {
                        return Ok(closing);
                    }
                }
            };
            // The outcome goes out behind the outputs.
            let (outcome, ()) = tokio::join!(rest, outputs);
            outcome
        };
        let outcome = tokio::select! {
            outcome = moving => outcome,
            never = feeding => match never {},
        };
        Ended { id, outcome }
    };
    (forward, task)
}

/// What comes on a stream beside its outputs.
struct Events<C> {
    stream: Stream,
    /// The visitor does not want it any more.
    cancelled: Pin<Box<C>>,
    cancelling: bool,
    input_window: u32,
}

/// What was moved.
enum Moved {
    /// Where the outputs begin.
    Begun,
    Other,
    /// Nothing: this is the outcome.
    Over(Closing),
}

struct Mover {
    id: StreamId,
    outgoing: Arc<Outgoing>,
}

impl Mover {
    /// Moves an output as far as the visitor has credit for it.
    async fn output(&self, output: Option<(StreamOutput, Channel, Arc<Credit>)>) {
        let Some((mut output, channel, credit)) = output else {
            return;
        };
        loop {
            let event = poll_fn(|context| {
                // Credit is a promise to read that a visitor need not keep.
                if self.outgoing.is_full(context.waker()) {
                    return Poll::Pending;
                }
                let most = {
                    let mut credit = lock(&credit.0);
                    credit.1 = Some(context.waker().clone());
                    credit.0.available().min(MAX_PAYLOAD)
                };
                // Without credit it waits for that, or for the end.
                output.poll_next(context, most as usize)
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

    /// Moves input until the stream ends, which ends this.
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
            // What nobody reads is of no use, but its credit is.
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

    /// Moves the next thing that is not on an output.
    async fn next(
        &self,
        events: &mut Events<impl Future<Output = ()>>,
    ) -> Result<Moved, LinkError> {
        let event = loop {
            tokio::select! {
                event = events.stream.next_but_output() => break event?,
                () = &mut events.cancelled, if !events.cancelling => {
                    events.cancelling = true;
                    events.stream.cancel();
                }
            }
        };
        Ok(match event {
            StreamEvent::Started { id, pid } => {
                self.event(&Event::Started { id, pid });
                Moved::Begun
            }
            StreamEvent::Attached(mut attached) => {
                if let Some(stdin) = &mut attached.stdin {
                    // What the agent has room for is between it and us.
                    stdin.window = events.input_window;
                }
                self.event(&Event::Attached(attached));
                Moved::Begun
            }
            StreamEvent::Listed(entry) => {
                self.event(&entry.as_wire());
                Moved::Other
            }
            StreamEvent::Service(state) => {
                self.event(&Event::Service(state.as_wire()));
                Moved::Other
            }
            StreamEvent::Connected => {
                self.event(&Event::Connected);
                Moved::Begun
            }
            StreamEvent::Closed(closing) => Moved::Over(closing),
            StreamEvent::Data(..) | StreamEvent::Gap(..) => Moved::Other,
        })
    }

    fn event(&self, event: &Event<'_>) {
        self.send(|out, id| encode::event(out, id, event));
    }

    /// Everything that comes here came over a link, so it fits into one frame.
    fn send(&self, encode: impl FnOnce(&mut Vec<u8>, StreamId) -> Result<(), WireError>) {
        let epoch = self.outgoing.epoch();
        let _ = self.outgoing.control(epoch, |out| encode(out, self.id));
    }
}

impl Ended {
    /// Writes how the stream ended.
    pub(super) fn close(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let text;
        let outcome = match &self.outcome {
            Ok(Closing::Exited(exit)) => Outcome::Exited(*exit),
            Ok(Closing::Failed(failed)) => Outcome::Failed(failed.as_wire()),
            Ok(Closing::Spawned { id, pid }) => Outcome::Spawned { id: *id, pid: *pid },
            Ok(Closing::Pong) => Outcome::Pong,
            Ok(Closing::PoweringOff) => Outcome::PoweringOff,
            Ok(Closing::DiskClean) => Outcome::DiskClean,
            Ok(Closing::Done) => Outcome::Done,
            Ok(Closing::EndOfList { more }) => Outcome::EndOfList { more: *more },
            Ok(Closing::Terminal(state)) => Outcome::Terminal(state.as_wire()),
            Ok(Closing::Service(state)) => Outcome::Service(state.as_wire()),
            Ok(Closing::Unknown) => Outcome::Failed(Failure::new(
                FailureKind::Unsupported,
                Stage::Request,
                "the program that owns the VM does not know this answer",
            )),
            Err(lost) => {
                text = lost.to_string();
                Outcome::Failed(Failure::new(FailureKind::Other, Stage::Request, &text))
            }
        };
        encode::close(out, self.id, &outcome)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
