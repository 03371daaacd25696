use std::sync::Arc;

use super::{NetworkLog, NetworkPolicy, NetworkStatus, state::NetworkState};

/// The network of a VM that this program has started: see [`network`](crate::network).
#[derive(Clone, Debug)]
pub struct Network {
    state: Arc<NetworkState>,
}

impl Network {
    pub(crate) fn new(state: Arc<NetworkState>) -> Self {
        Self { state }
    }

    /// Returns the policy.
    pub fn policy(&self) -> Arc<NetworkPolicy> {
        self.state.policy()
    }

    /// Changes the policy at once. Connections that the new one does not allow are reset.
    ///
    /// The first policy that is not [off](NetworkPolicy::off) lets the guest prepare its
    /// network, which takes some milliseconds; connections are refused until then.
    pub fn set_policy(&self, policy: NetworkPolicy) {
        self.state.set_policy(policy);
    }

    pub(crate) fn status(&self) -> NetworkStatus {
        let state = &self.state;
        NetworkStatus::new(&state.policy(), state.totals(), state.connections())
    }

    pub(crate) fn log(&self) -> NetworkLog {
        NetworkLog::own(self.state.events())
    }
}
