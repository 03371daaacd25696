use std::{sync::Arc, time::SystemTime};

use tokio::{sync::oneshot, task::AbortHandle};

use super::{Network, NetworkHooks, NetworkPolicy, NetworkState, capture};
use crate::{error::Error, session::Session};

/// The network of a VM that this program owns. It is not served any more when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct OwnNetwork {
    state: Arc<NetworkState>,
    /// Whether ports may be published although the policy does not say so: there is none.
    has_no_policy: bool,
    serving: AbortHandle,
}

impl OwnNetwork {
    /// Serves the network of a guest. Returns when that takes connections.
    pub(crate) async fn start(
        policy: Option<NetworkPolicy>,
        hooks: NetworkHooks,
        session: Arc<Session>,
    ) -> Result<Self, Error> {
        let has_no_policy = policy.is_none();
        let state = Arc::new(NetworkState::new(policy.unwrap_or_default(), hooks));
        let (ready, is_ready) = oneshot::channel();
        let serving = tokio::spawn(capture::serve(session, state.clone(), ready));
        let network = Self {
            state,
            has_no_policy,
            serving: serving.abort_handle(),
        };
        // Fails only if the task panics.
        is_ready.await.map_err(|_| Error::unexpected_reply())??;
        Ok(network)
    }

    pub(crate) fn handle(&self) -> Network {
        Network::new(self.state.clone())
    }

    /// Returns whether ports of the guest may be published.
    pub(crate) fn may_publish(&self) -> bool {
        self.has_no_policy || self.state.policy().has_published_ports()
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
