//! Clients of a relayed session.
//!
//! A client is a [`Session`], or a [`RawClient`] that writes frames by hand. The
//! agent is the guest of the other tests.

mod answers;
mod backpressure;
mod disconnects;
mod services;
mod violations;

use super::*;
use crate::session::relay;

/// The owner's session, and its guest.
async fn owner() -> (Arc<Session>, Guest) {
    let (session, guest) = connect_serial().await;
    (Arc::new(session), guest)
}

/// Starts a relay and returns the client's socket.
fn relay_socket(session: &Arc<Session>) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    tokio::spawn(relay(theirs, session.clone()));
    ours
}

async fn new_client(session: &Arc<Session>) -> Session {
    let link = Link::socket(relay_socket(session));
    Session::connect(link, None).await.unwrap()
}

/// A client that writes frames by hand.
struct RawClient {
    link: UnixStream,
    decoder: Decoder,
    unread: Vec<u8>,
}

/// A message to the client, abbreviated.
#[derive(Debug, PartialEq, Eq)]
enum FromRelay {
    Hello([u8; 16]),
    Started,
    Closed(Result<(), FailureKind>),
    Data(usize),
    Other,
}

impl RawClient {
    fn new(session: &Arc<Session>) -> Self {
        Self {
            link: relay_socket(session),
            decoder: Decoder::new(Peer::Guest),
            unread: Vec::new(),
        }
    }

    /// Creates a client that has exchanged hellos.
    async fn after_hello(session: &Arc<Session>, window: u32) -> Self {
        let mut raw = Self::new(session);
        raw.send(&hello(window, [0; 16])).await;
        assert_eq!(raw.recv().await, Some(FromRelay::Hello(BOOT_ID)));
        raw
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.link.write_all(bytes).await.unwrap();
    }

    async fn ask(&mut self, number: u32, request: &Request<'_>) -> StreamId {
        let id = StreamId::new(number).unwrap();
        let frame = frames(|out| encode::open(out, id, request).unwrap());
        self.send(&frame).await;
        id
    }

    /// Receives the next message on any stream. `None` if the relay has closed the
    /// link.
    async fn recv(&mut self) -> Option<FromRelay> {
        loop {
            let mut input = &self.unread[..];
            let received = self
                .decoder
                .decode(&mut input)
                .unwrap()
                .map(|item| match item {
                    Item::Hello(hello) => FromRelay::Hello(hello.boot_id),
                    Item::Event {
                        event: Event::Started { .. },
                        ..
                    } => FromRelay::Started,
                    Item::Close {
                        outcome: Outcome::Failed(failure),
                        ..
                    } => FromRelay::Closed(Err(failure.kind)),
                    Item::Close { .. } => FromRelay::Closed(Ok(())),
                    Item::Data { bytes, .. } => FromRelay::Data(bytes.len()),
                    _ => FromRelay::Other,
                });
            let taken = self.unread.len() - input.len();
            self.unread.drain(..taken);
            if received.is_some() {
                return received;
            }
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }
}

/// Opens a client's process. Returns its stream, and the guest's id of the stream.
async fn open_for(client: &Session, guest: &mut Guest, ticket: u64) -> (Stream, StreamId) {
    let stream = client.open(&Request::Start(start(ticket))).unwrap();
    match guest.recv().await {
        Some(FromHost::Start(id, received)) if received == ticket => (stream, id),
        other => panic!("{other:?}"),
    }
}

/// As [`open_for`], for a process that the guest reports as started.
async fn start_for(client: &Session, guest: &mut Guest, ticket: u64) -> (Stream, StreamId) {
    let (mut stream, id) = open_for(client, guest, ticket).await;
    guest.send(&started(id)).await;
    let event = stream.next_except_output().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
    (stream, id)
}

/// Returns when the client's messages have reached the guest, and its answers the
/// client. Nothing else may come from the host.
async fn settle_client(client: &Session, guest: &mut Guest) {
    let mut ping = client.open(&Request::Ping).unwrap();
    let Some(FromHost::Open(id)) = guest.recv().await else {
        panic!("no ping came");
    };
    guest.send(&close(id, &Outcome::Pong)).await;
    let answer = ping.next().await;
    assert!(
        matches!(outcome_of(&answer), Some(Outcome::Pong)),
        "{answer:?}"
    );
}

async fn expect_exit(stream: &mut Stream) -> Vec<u8> {
    let (bytes, end) = read_to_end(stream).await;
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
    bytes
}

/// Sends `available` bytes to a stream, and more until no more credit comes.
/// Returns how much it sent, about 64 MiB at most.
async fn fill(session: &Session, guest: &mut Guest, stream: StreamId, available: u32) -> usize {
    const MAX_SENT: usize = 64 * 1024 * 1024;
    const PIECE: usize = 65_536;
    let frame = data(stream, Channel::Stdout, &[b'x'; PIECE]);
    let (mut sent, mut available, mut quiet) = (0, available as usize, 0);
    // Everything runs as a task on this thread, and each round lets all of
    // them run.
    while quiet < 20 && sent < MAX_SENT {
        while available >= PIECE {
            guest.send(&frame).await;
            available -= PIECE;
            sent += PIECE;
            quiet = 0;
        }
        available += recv_credit(session, guest, stream, Channel::Stdout).await as usize;
        quiet += 1;
    }
    sent
}
