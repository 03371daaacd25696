//! Lends a session to another program.
//!
//! Towards the visitor it speaks as the agent would; each stream that the
//! visitor opens is a stream of ours. Nothing is read from ours that the visitor
//! has no credit for, so a visitor that does not read stops nobody but itself,
//! and a link that we make anew goes unnoticed. When the visitor leaves, its
//! streams are dropped, as those of any caller.

mod forward;

use std::{collections::HashMap, convert::Infallible, sync::Arc};

use bytes::Bytes;
use tokio::{net::UnixStream, task::JoinSet};
use vmcell_wire::{
    Attach, Channel, Decoder, Failure, FailureKind, Hello, Item, Outcome, Peer, Position, Request,
    Stage, StreamId, WireError, encode,
    limits::MAX_BUILD,
    service::{Logs, Service},
    terminal::{AttachTerminal, Terminal},
};

use super::{
    LinkError, MAX_UNSENT_CONTROL, OpenError, Session, WINDOW, outgoing::Outgoing, writer,
};
use forward::{Begin, Ended, Forward, Windows};
use vmcell_tree::truncate_text;

/// Serves a visitor until it leaves, or there is nothing left to lend.
pub(crate) async fn relay(socket: UnixStream, session: Arc<Session>) {
    let outgoing = Arc::new(Outgoing::default());
    let mut lost = session.lost();
    let visit = Visit {
        session,
        outgoing: outgoing.clone(),
        window: None,
        streams: HashMap::new(),
        tasks: JoinSet::new(),
    };
    let lost = async {
        // What this answers must be gone before the session may go.
        let _ = lost.wait_for(Option::is_some).await;
    };
    tokio::select! {
        _ = visit.listen(&socket) => {}
        _ = write_all(&socket, &outgoing) => {}
        () = lost => {}
    }
}

async fn write_all(socket: &UnixStream, outgoing: &Outgoing) -> Result<Infallible, LinkError> {
    loop {
        for piece in outgoing.take().await {
            writer::write(socket, &piece).await?;
        }
    }
}

struct Visit {
    session: Arc<Session>,
    outgoing: Arc<Outgoing>,
    /// The window that the visitor's hello named.
    window: Option<u32>,
    streams: HashMap<StreamId, Forward>,
    tasks: JoinSet<Ended>,
}

impl Visit {
    async fn listen(mut self, socket: &UnixStream) -> Result<Infallible, LinkError> {
        let mut decoder = Decoder::new(Peer::Host);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            // As the session's reader does: `readable` alone does not yield.
            tokio::task::coop::consume_budget().await;
            tokio::select! {
                Some(Ok(ended)) = self.tasks.join_next() => {
                    // In this order: whoever hears of it may use the id again.
                    self.streams.remove(&ended.id);
                    if let Some(lost) = *self.session.lost().borrow() {
                        // Hanging up tells it: the VM is gone.
                        return Err(lost);
                    }
                    self.send(|out| ended.close(out))?;
                    continue;
                }
                readable = socket.readable() => readable?,
            }
            let count = match socket.try_read(&mut buffer) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            let mut input = &buffer[..count];
            while let Some(item) = decoder.decode(&mut input)? {
                self.handle(item)?;
            }
            // Answers are what a visitor can make us queue without end.
            if self.outgoing.unsent_control() > MAX_UNSENT_CONTROL {
                return Err(LinkError::PeerNotReading);
            }
        }
    }

    fn handle(&mut self, item: Item<'_>) -> Result<(), LinkError> {
        match (item, self.window) {
            (Item::Hello(hello), None) => self.greet(&hello),
            (Item::Open { stream, request }, Some(window)) => self.open(stream, request, window),
            (Item::OpenUnknown { stream }, Some(_)) => self.refuse(
                stream,
                FailureKind::Unsupported,
                "the program that owns the VM does not know this request",
            ),
            (Item::Cancel { stream }, Some(_)) => {
                if let Some(forward) = self.streams.get(&stream) {
                    forward.cancel();
                }
                Ok(())
            }
            (Item::Data { stream, bytes, .. }, Some(_)) => match self.streams.get_mut(&stream) {
                Some(forward) => Ok(forward.input(Bytes::copy_from_slice(bytes))?),
                None => Ok(()),
            },
            (Item::End { stream, .. }, Some(_)) => {
                if let Some(forward) = self.streams.get(&stream) {
                    forward.end_input();
                }
                Ok(())
            }
            (
                Item::Credit {
                    stream,
                    channel,
                    bytes,
                },
                Some(_),
            ) => match self.streams.get(&stream) {
                Some(forward) => Ok(forward.credit(channel, bytes)?),
                None => Ok(()),
            },
            // The close went out over a socket, which loses nothing.
            (Item::Ack { .. }, Some(_)) => Ok(()),
            _ => Err(LinkError::Violation(WireError::Malformed)),
        }
    }

    fn greet(&mut self, hello: &Hello<'_>) -> Result<(), LinkError> {
        self.window = Some(hello.window);
        let peer = self.session.peer();
        let answer = Hello {
            capabilities: peer.capabilities,
            // To make it safe may have made it longer.
            ..Hello::new(
                truncate_text(&peer.build, MAX_BUILD),
                peer.window,
                peer.boot_id,
            )
        };
        self.send(|out| encode::hello(out, &answer))
    }

    fn open(&mut self, id: StreamId, request: Request<'_>, window: u32) -> Result<(), LinkError> {
        if self.streams.contains_key(&id) {
            return Err(LinkError::Violation(WireError::BadStream(id.get())));
        }
        let (request, windows) = match request {
            Request::Attach(attach) => {
                let windows = Windows {
                    stdout: attach.stdout.map(|position| position.window),
                    stderr: attach.stderr.map(|position| position.window),
                };
                (Request::Attach(with_our_windows(attach)), windows)
            }
            Request::Terminal(Terminal::Attach(used)) => {
                let windows = Windows::stdout(used.output.window);
                let used = AttachTerminal {
                    output: with_our_window(used.output),
                    ..used
                };
                (Request::Terminal(Terminal::Attach(used)), windows)
            }
            Request::Start(start) if start.lifetime == vmcell_wire::Lifetime::Foreground => {
                (request, Windows::both(window))
            }
            Request::Service(Service::Logs(logs)) => {
                let windows = Windows::stdout(logs.window);
                let logs = Logs {
                    window: WINDOW,
                    ..logs
                };
                (Request::Service(Service::Logs(logs)), windows)
            }
            Request::Files(_) | Request::Dial { .. } => (request, Windows::stdout(window)),
            // Stopping the VM is asked for at the door, and a visitor's link
            // is never made anew.
            Request::PowerOff { .. } | Request::Resume(_) | Request::SetClock { .. } => {
                let text = "only the program that owns the VM can do this";
                return self.refuse(id, FailureKind::Denied, text);
            }
            request => (request, Windows::default()),
        };
        let begin = match request {
            Request::Files(_) => Begin::AtOnce,
            _ => Begin::WhenTold,
        };
        match self.session.open(&request) {
            Ok(stream) => {
                let outgoing = self.outgoing.clone();
                let input_window = self.session.peer().window;
                let (forward, task) =
                    forward::start(id, stream, outgoing, windows, begin, input_window);
                self.streams.insert(id, forward);
                self.tasks.spawn(task);
                Ok(())
            }
            Err(OpenError::Link(lost)) => Err(lost),
            Err(OpenError::TooLarge) => {
                self.refuse(id, FailureKind::Invalid, "the request is too large")
            }
            Err(OpenError::Full) => {
                let text = "too many requests are under way in this VM";
                self.refuse(id, FailureKind::Limit, text)
            }
            Err(OpenError::Unsupported(feature)) => {
                let feature = feature.names().next().unwrap_or_default();
                let text = format!("the agent lacks {feature}");
                self.refuse(id, FailureKind::Unsupported, &text)
            }
        }
    }

    fn refuse(&self, id: StreamId, kind: FailureKind, text: &str) -> Result<(), LinkError> {
        let failure = Failure::new(kind, Stage::Request, text);
        self.send(|out| encode::close(out, id, &Outcome::Failed(failure)))
    }

    fn send(
        &self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
    ) -> Result<(), LinkError> {
        Ok(self.outgoing.control(self.outgoing.epoch(), encode)?)
    }
}

/// The visitor's windows are between it and us. Between us and the agent ours
/// count.
fn with_our_windows(attach: Attach<'_>) -> Attach<'_> {
    Attach {
        stdout: attach.stdout.map(with_our_window),
        stderr: attach.stderr.map(with_our_window),
        ..attach
    }
}

fn with_our_window(position: Position) -> Position {
    Position {
        window: WINDOW,
        ..position
    }
}

impl Forward {
    fn credit(&self, channel: Channel, bytes: u32) -> Result<(), WireError> {
        match channel {
            Channel::Stdin => Ok(()),
            Channel::Stdout => self.stdout.granted(bytes),
            Channel::Stderr => self.stderr.granted(bytes),
        }
    }
}
