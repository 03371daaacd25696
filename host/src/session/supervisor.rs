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
const SHORTEST_LINK: Duration = Duration::from_millis(250);

impl LinkSupervisor {
    /// Runs until there is no link and no way to get one.
    pub(super) async fn run(mut self) {
        loop {
            let began = Instant::now();
            let lost = self.converse().await;
            if !self.link.can_begin_anew(lost) {
                self.shared.fail(lost);
                return;
            }
            tracing::debug!(%lost, "the link to the agent is made anew");
            self.hand_over(lost);
            if lost == LinkError::Closed {
                sleep_until(began + SHORTEST_LINK).await;
            }
            if let Err(lost) = self.begin_anew().await {
                self.shared.fail(lost);
                return;
            }
        }
    }

    /// Reads and writes until one of them fails.
    async fn converse(&mut self) -> LinkError {
        let stream = self.link.stream();
        self.shared.outgoing.open(&stream);
        let ended = tokio::select! {
            ended = self.reader.run(&self.shared) => ended,
            ended = writer::run(&stream, &self.shared) => ended,
            () = self.shared.drop_link.notified() => Err(LinkError::Dropped),
            () = self.shared.deaf.notified() => Err(LinkError::PeerNotReading),
        };
        let Err(lost) = ended;
        lost
    }

    /// Prepares the streams for the next link.
    fn hand_over(&self, lost: LinkError) {
        let epoch = self.shared.outgoing.begin_anew();
        for (id, state) in self.shared.table.all() {
            if !state.reopen(&self.shared, epoch) {
                self.shared.table.remove(id);
                state.fail(lost);
            }
        }
    }

    async fn begin_anew(&mut self) -> Result<(), LinkError> {
        let greeting = async {
            self.link.renew().await?;
            self.link.greet(self.peer.boot_id).await
        };
        let (reader, peer) = timeout(HELLO_TIMEOUT, greeting)
            .await
            .unwrap_or(Err(LinkError::PeerNotReading))?;
        if peer != self.peer {
            return Err(LinkError::WrongBoot);
        }
        self.reader = reader;
        Ok(())
    }
}
