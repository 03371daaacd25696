use std::{
    convert::Infallible,
    io,
    sync::{Arc, atomic::Ordering},
};

use tokio::net::UnixStream;
use vmcell_wire::{
    Channel, Decoder, Hello, Item, Outcome, Peer, StreamId, WireError,
    reset::{Nonce, Scanned, Scanner},
};

use super::{LinkError, PeerInfo, Shared, state::AfterClose};

/// Reads frames from a link and passes them to the streams.
pub(super) struct Reader {
    link: Arc<UnixStream>,
    decoder: Decoder,
    buffer: Box<[u8]>,
    /// The part of the buffer that was read and not decoded yet.
    unread: std::ops::Range<usize>,
}

const BUFFER_SIZE: usize = 64 * 1024;

/// If at least this much of a data frame is missing, it is read directly into
/// its stream's inbox.
const MIN_DIRECT_READ: usize = 16 * 1024;

impl Reader {
    pub(super) fn new(link: Arc<UnixStream>) -> Self {
        Self {
            link,
            decoder: Decoder::new(Peer::Guest),
            buffer: vec![0; BUFFER_SIZE].into_boxed_slice(),
            unread: 0..0,
        }
    }

    /// Reads the first frame, which must be a hello.
    pub(super) async fn hello(&mut self) -> Result<PeerInfo, LinkError> {
        loop {
            let unread = self.buffer.get(self.unread.clone()).unwrap_or_default();
            let mut input = unread;
            match self.decoder.decode(&mut input)? {
                Some(Item::Hello(hello)) => {
                    let peer = peer_info(&hello);
                    self.unread.start += unread.len() - input.len();
                    return Ok(peer);
                }
                Some(_) => return Err(LinkError::Violation(WireError::NotVmcell)),
                None => {}
            }
            self.read().await?;
        }
    }

    /// Waits for the outcome of the only stream. Returns whether it is
    /// [`Outcome::Done`].
    pub(super) async fn is_done(&mut self, only: StreamId) -> Result<bool, LinkError> {
        loop {
            let unread = self.buffer.get(self.unread.clone()).unwrap_or_default();
            let mut input = unread;
            match self.decoder.decode(&mut input)? {
                Some(Item::Close {
                    stream, outcome, ..
                }) if stream == only => {
                    let is_done = outcome == Outcome::Done;
                    self.unread.start += unread.len() - input.len();
                    return Ok(is_done);
                }
                Some(_) => return Err(LinkError::Violation(WireError::Malformed)),
                None => {}
            }
            self.read().await?;
        }
    }

    /// Drops bytes from before the reset, up to the agent's answer to it.
    pub(super) async fn skip_past(&mut self, nonce: Nonce) -> Result<(), LinkError> {
        let mut scanner = Scanner::new(nonce);
        loop {
            // As in `run`: the timeout of the caller must be able to expire.
            tokio::task::coop::consume_budget().await;
            self.read().await?;
            let mut input = self.buffer.get(self.unread.clone()).unwrap_or_default();
            loop {
                match scanner.scan(&mut input) {
                    Scanned::Other(_) => {}
                    Scanned::Nothing => break,
                    Scanned::Mark => {
                        self.unread.start = self.unread.end - input.len();
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Drops all bytes until the link ends.
    pub(super) async fn skip_to_end(&mut self) -> LinkError {
        loop {
            tokio::task::coop::consume_budget().await;
            if let Err(error) = self.read().await {
                return error;
            }
        }
    }

    /// Passes frames to the streams until the link fails.
    pub(super) async fn run(&mut self, shared: &Shared) -> Result<Infallible, LinkError> {
        loop {
            // A guest that never pauses must not keep other tasks from running;
            // `readable` alone does not yield.
            tokio::task::coop::consume_budget().await;
            let mut input = self.buffer.get(self.unread.clone()).unwrap_or_default();
            while let Some(item) = self.decoder.decode(&mut input)? {
                dispatch(shared, item)?;
            }
            self.unread = 0..0;
            shared.receive_rate.ready().await;
            let is_limited = shared.receive_rate.is_limited();
            let direct = match self.decoder.pending_data() {
                // These are as large as the space of the stream.
                Some((stream, channel, remaining))
                    if remaining >= MIN_DIRECT_READ && !is_limited =>
                {
                    self.read_direct(shared, stream, channel, remaining).await?
                }
                _ => {
                    self.read().await?;
                    0
                }
            };
            let count = direct + self.unread.len();
            shared.receive_rate.count(count);
            shared
                .received_bytes
                .fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Refills the buffer. All of its bytes must have been decoded.
    async fn read(&mut self) -> Result<(), LinkError> {
        loop {
            self.link.readable().await?;
            match self.link.try_read(&mut self.buffer) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(count) => {
                    self.unread = 0..count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads a part of a data frame directly into the inbox of its stream. Returns the bytes
    /// that the buffer does not contain.
    async fn read_direct(
        &mut self,
        shared: &Shared,
        stream: StreamId,
        channel: Channel,
        remaining: usize,
    ) -> Result<usize, LinkError> {
        let Some(state) = shared
            .table
            .get(stream)
            .filter(|state| state.accepts_direct_read(channel))
        else {
            self.read().await?;
            return Ok(0);
        };
        self.link.readable().await?;
        let count = state.fill(shared, channel, remaining, |space| {
            match self.link.try_read_buf(space) {
                Ok(0) => Err(LinkError::Closed),
                Ok(count) => Ok(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                Err(error) => Err(error.into()),
            }
        })?;
        self.decoder.received(count);
        Ok(count)
    }
}

fn peer_info(hello: &Hello<'_>) -> PeerInfo {
    PeerInfo {
        build: crate::printable(hello.build.as_bytes()).into_owned(),
        capabilities: hello.capabilities,
        boot_id: hello.boot_id,
        window: hello.window,
    }
}

/// Passes an item to its stream. An item for a stream that the host never
/// opened, or that is closed, is a violation.
fn dispatch(shared: &Shared, item: Item<'_>) -> Result<(), LinkError> {
    let find = |stream: StreamId| {
        shared
            .table
            .get(stream)
            .ok_or(LinkError::Violation(WireError::BadStream(stream.get())))
    };
    match item {
        Item::Event {
            stream,
            event,
            payload,
        } => find(stream)?.event(shared, event, payload)?,
        Item::Data {
            stream,
            channel,
            bytes,
        } => find(stream)?.data(shared, channel, bytes)?,
        Item::End { stream, channel } => find(stream)?.end(channel)?,
        Item::Credit { stream, bytes, .. } => find(stream)?.credit(bytes)?,
        Item::Close {
            stream,
            outcome,
            payload,
        } => {
            if find(stream)?.close(shared, &outcome, payload) == AfterClose::Remove {
                shared.table.remove(stream);
            }
        }
        Item::Hello(_)
        | Item::Open { .. }
        | Item::OpenUnknown { .. }
        | Item::Cancel { .. }
        | Item::Ack { .. } => return Err(LinkError::Violation(WireError::Malformed)),
    }
    Ok(())
}
