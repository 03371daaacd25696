use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};

use super::{Link, LinkError, PeerInfo, Shared, reader::Reader, writer};

/// The task that serves a session: it reads and writes, and when the link breaks
/// it makes a new one and reopens the streams on it.
pub(super) struct LinkSupervisor {
    pub(super) link: Link,
    pub(super) reader: Reader,
    pub(super) peer: PeerInfo,
    pub(super) shared: Arc<Shared>,
}

/// How long the agent may take to answer on a new link. The agent keeps processes
/// without a link for longer than this before it ends them.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// The shortest time between the starts of two links, which limits how often a
/// guest that closes its links is reconnected.
const MIN_LINK_LIFETIME: Duration = Duration::from_millis(250);

impl LinkSupervisor {
    /// Runs until the link has failed and cannot be made again.
    pub(super) async fn run(mut self) {
        loop {
            let started = Instant::now();
            let error = self.serve_link().await;
            if !self.link.can_reconnect_after(error) {
                self.shared.fail(error);
                return;
            }
            tracing::debug!(%error, "reconnecting the link to the agent");
            self.reopen_streams(error);
            if error == LinkError::Closed {
                sleep_until(started + MIN_LINK_LIFETIME).await;
            }
            if let Err(error) = self.reconnect().await {
                self.shared.fail(error);
                return;
            }
        }
    }

    /// Reads and writes until one of them fails, and returns why.
    async fn serve_link(&mut self) -> LinkError {
        let stream = self.link.stream();
        self.shared.outgoing.set_link(&stream);
        let ended = tokio::select! {
            ended = self.reader.run(&self.shared) => ended,
            ended = writer::run(&stream, &self.shared) => ended,
            () = self.shared.drop_link.notified() => Err(LinkError::Dropped),
            () = self.shared.peer_not_reading.notified() => Err(LinkError::PeerNotReading),
        };
        let Err(error) = ended;
        error
    }

    /// Queues the requests that reopen the streams on the next link. Streams that
    /// cannot be reopened fail.
    fn reopen_streams(&self, error: LinkError) {
        let epoch = self.shared.outgoing.start_next_epoch();
        for (id, state) in self.shared.table.all() {
            if !state.reopen(&self.shared, epoch) {
                self.shared.table.remove(id);
                state.fail(error);
            }
        }
        self.shared.ended_links.send_modify(|count| *count += 1);
    }

    async fn reconnect(&mut self) -> Result<(), LinkError> {
        let (reader, peer) = loop {
            self.shared.pauses.running().await;
            let connecting = async {
                self.link.reconnect().await?;
                self.link.exchange_hellos(self.peer.boot_id).await
            };
            tokio::select! {
                biased;
                connected = timeout(HELLO_TIMEOUT, connecting) => {
                    break connected.unwrap_or(Err(LinkError::PeerNotReading))?;
                }
                // A guest that is paused cannot answer.
                _ = self.shared.pauses.changed(false) => {}
            }
        };
        if peer != self.peer {
            return Err(LinkError::WrongBoot);
        }
        self.reader = reader;
        Ok(())
    }
}
