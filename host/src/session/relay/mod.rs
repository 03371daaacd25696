//! Relays a session to another program, the client.
//!
//! Towards the client the relay acts as the agent; for each stream that the
//! client opens, it opens a stream of the session. It reads only as much as the
//! client has credit for, so a client that does not read stalls only its own
//! streams. The client does not notice when the session makes a new link. When
//! the client disconnects, its streams are dropped, as those of any caller.

mod forward;

use std::{collections::HashMap, convert::Infallible, sync::Arc};

use bytes::Bytes;
use tokio::{net::UnixStream, task::JoinSet};
use vmcell_wire::{
    Capabilities, Channel, Decoder, Failure, FailureKind, Hello, Item, Outcome, Peer, Request,
    Stage, StreamId, WireError, encode, limits::MAX_BUILD,
};

use super::{
    LinkError, MAX_UNSENT_CONTROL, OpenError, Session, WINDOW, outgoing::Outgoing, writer,
};
use forward::{EndedStream, ForwardedStream};
use vmcell_tree::truncate_text;

/// Serves a client until it disconnects or the session ends.
pub(crate) async fn relay(socket: UnixStream, session: Arc<Session>) {
    let outgoing = Arc::new(Outgoing::default());
    let mut link_error = session.link_error();
    let connection = ClientConnection {
        session,
        outgoing: outgoing.clone(),
        window: None,
        capabilities: Capabilities::NONE,
        streams: HashMap::new(),
        tasks: JoinSet::new(),
    };
    let session_end = async {
        // The guard is dropped at once: it would block the drop of the session.
        let _ = link_error.wait_for(Option::is_some).await;
    };
    tokio::select! {
        _ = connection.serve(&socket) => {}
        _ = write_queued(&socket, &outgoing) => {}
        () = session_end => {}
    }
}

async fn write_queued(socket: &UnixStream, outgoing: &Outgoing) -> Result<Infallible, LinkError> {
    loop {
        for piece in outgoing.take().await {
            writer::write(socket, &piece).await?;
        }
    }
}

struct ClientConnection {
    session: Arc<Session>,
    outgoing: Arc<Outgoing>,
    /// The window of the client's hello. `None` before the hello.
    window: Option<u32>,
    /// What the client can decode, according to its hello.
    capabilities: Capabilities,
    streams: HashMap<StreamId, ForwardedStream>,
    tasks: JoinSet<EndedStream>,
}

impl ClientConnection {
    async fn serve(mut self, socket: &UnixStream) -> Result<Infallible, LinkError> {
        let mut decoder = Decoder::new(Peer::Host);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            // As the session's reader does: `readable` alone does not yield.
            tokio::task::coop::consume_budget().await;
            tokio::select! {
                Some(Ok(ended)) = self.tasks.join_next() => {
                    // In this order: after the close the client may reuse the id.
                    self.streams.remove(&ended.id);
                    if let Some(error) = *self.session.link_error().borrow() {
                        // The VM is gone, which the client learns from the hangup.
                        return Err(error);
                    }
                    let capabilities = self.capabilities;
                    self.send(|out| ended.close(out, capabilities))?;
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
            // Replies are what a client can make the relay queue without limit.
            if self.outgoing.unsent_control() > MAX_UNSENT_CONTROL {
                return Err(LinkError::PeerNotReading);
            }
        }
    }

    fn handle(&mut self, item: Item<'_>) -> Result<(), LinkError> {
        match (item, self.window) {
            (Item::Hello(hello), None) => self.answer_hello(&hello),
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
            // Nothing to do: a socket does not lose the close.
            (Item::Ack { .. }, Some(_)) => Ok(()),
            _ => Err(LinkError::Violation(WireError::Malformed)),
        }
    }

    fn answer_hello(&mut self, hello: &Hello<'_>) -> Result<(), LinkError> {
        self.window = Some(hello.window);
        self.capabilities = hello.capabilities;
        let peer = self.session.peer();
        let answer = Hello {
            // What this program does not know, it cannot forward.
            capabilities: peer.capabilities.intersection(Capabilities::ALL),
            // It may have grown when it was made safe to print.
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
        if request.is_for_owner() {
            let text = "only the program that owns the VM can do this";
            return self.refuse(id, FailureKind::Denied, text);
        }
        // The client's windows apply to the outputs of the relay.
        let windows = request.outputs(window);
        match self.session.open(&request.with_window(WINDOW)) {
            Ok(stream) => {
                let outgoing = self.outgoing.clone();
                let input_window = self.session.peer().window;
                let start_event = request.start_event();
                let (forward, task) =
                    forward::start(id, stream, outgoing, windows, start_event, input_window);
                self.streams.insert(id, forward);
                self.tasks.spawn(task);
                Ok(())
            }
            Err(OpenError::Link(error)) => Err(error),
            Err(OpenError::TooLarge) => {
                self.refuse(id, FailureKind::Invalid, "the request is too large")
            }
            Err(OpenError::Full) => {
                let text = "too many requests are under way in this VM";
                self.refuse(id, FailureKind::Limit, text)
            }
            Err(OpenError::Paused) => self.refuse(id, FailureKind::Conflict, "the VM is paused"),
            Err(OpenError::TooManySecrets) => {
                let text = "the programs of this VM have got too many secrets";
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

impl ForwardedStream {
    fn credit(&self, channel: Channel, bytes: u32) -> Result<(), WireError> {
        match channel {
            Channel::Stdin => Ok(()),
            Channel::Stdout => self.stdout.granted(bytes),
            Channel::Stderr => self.stderr.granted(bytes),
        }
    }
}
