use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};

use super::{Link, LinkError, PeerInfo, Shared, reader::Reader, writer};

/// The task that keeps a conversation going: it reads, it writes, and when the
/// link breaks it begins a new one and takes the streams over.
pub(super) struct LinkSupervisor {
    pub(super) link: Link,
    pub(super) reader: Reader,
    pub(super) peer: PeerInfo,
    pub(super) shared: Arc<Shared>,
}

/// How long the agent may take to answer on a new link. It gives processes up
/// that nobody takes over for longer than this.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// A guest that hangs up again and again has a new link so often.
const MIN_LINK_LIFETIME: Duration = Duration::from_millis(250);

impl LinkSupervisor {
    /// Runs until there is no link and no way to get one.
    pub(super) async fn run(mut self) {
        loop {
            let started = Instant::now();
            let error = self.serve_link().await;
            if !self.link.can_reconnect_after(error) {
                self.shared.fail(error);
                return;
            }
            tracing::debug!(%error, "the link to the agent is made anew");
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

    /// Reads and writes until one of them fails.
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

    /// Prepares the streams for the next link.
    fn reopen_streams(&self, error: LinkError) {
        let epoch = self.shared.outgoing.start_next_epoch();
        for (id, state) in self.shared.table.all() {
            if !state.reopen(&self.shared, epoch) {
                self.shared.table.remove(id);
                state.fail(error);
            }
        }
    }

    async fn reconnect(&mut self) -> Result<(), LinkError> {
        let connecting = async {
            self.link.reconnect().await?;
            self.link.exchange_hellos(self.peer.boot_id).await
        };
        let (reader, peer) = timeout(HELLO_TIMEOUT, connecting)
            .await
            .unwrap_or(Err(LinkError::PeerNotReading))?;
        if peer != self.peer {
            return Err(LinkError::WrongBoot);
        }
        self.reader = reader;
        Ok(())
    }
}
