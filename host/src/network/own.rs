use std::{sync::Arc, time::SystemTime};

use tokio::{sync::oneshot, task::AbortHandle};

use super::{Network, NetworkHooks, NetworkPolicy, NetworkState, capture};
use crate::{error::Error, session::Session};

/// The network of a VM that this program owns. It is not served any more when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct OwnNetwork {
    state: Arc<NetworkState>,
    serving: AbortHandle,
}

impl OwnNetwork {
    /// Serves the network of a guest. Returns when that takes connections.
    pub(crate) async fn start(
        policy: Option<NetworkPolicy>,
        hooks: NetworkHooks,
        session: Arc<Session>,
    ) -> Result<Self, Error> {
        // Who sets no policy may publish ports.
        let policy = policy.unwrap_or(NetworkPolicy::off().published_ports(true));
        let state = Arc::new(NetworkState::new(policy, hooks));
        let (ready, is_ready) = oneshot::channel();
        let serving = tokio::spawn(capture::serve(session, state.clone(), ready));
        let network = Self {
            state,
            serving: serving.abort_handle(),
        };
        // Fails only if the task panics.
        is_ready.await.map_err(|_| Error::unexpected_reply())??;
        Ok(network)
    }

    pub(crate) fn handle(&self) -> Network {
        Network::new(self.state.clone())
    }

    /// Returns what was denied since a time.
    pub(crate) fn denials_since(&self, time: SystemTime) -> Vec<String> {
        self.state.denials_since(time)
    }
}

impl Drop for OwnNetwork {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
