use std::{net::IpAddr, sync::Arc, time::SystemTime};

use tokio::sync::broadcast::{self, error::RecvError};

use super::{NetworkEvent, NetworkPolicy, Wanted, state::NetworkState};

/// The network of a VM: what its programs may reach, and what they did. See
/// [`network`](crate::network).
#[derive(Clone, Debug)]
pub struct Network {
    state: Arc<NetworkState>,
}

/// How much the programs of a guest have used the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficTotals {
    /// How often something was decided.
    pub decisions: u64,
    /// How often something was denied.
    pub denials: u64,
    /// How many bytes programs have sent.
    pub sent: u64,
    /// How many bytes they have received.
    pub received: u64,
}

/// An open connection of a program of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenConnection {
    /// The number of its [`Decision`](super::Decision).
    pub number: u64,
    /// What the program has connected to.
    pub wanted: Wanted,
    /// The address.
    pub address: IpAddr,
    /// When it was made.
    pub began: SystemTime,
    /// How many bytes the program has sent.
    pub sent: u64,
    /// How many bytes it has received.
    pub received: u64,
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

    /// Returns how much was used.
    pub fn totals(&self) -> TrafficTotals {
        self.state.totals()
    }

    /// Returns the open connections, the oldest first.
    pub fn connections(&self) -> Vec<OpenConnection> {
        self.state.connections()
    }

    /// Returns the last 1000 events, the oldest first, and all that follow.
    pub fn log(&self) -> (Vec<NetworkEvent>, NetworkLog) {
        let (recent, later) = self.state.events();
        (recent, NetworkLog { later })
    }
}

/// What happens on the network of a VM from now on.
#[derive(Debug)]
pub struct NetworkLog {
    later: broadcast::Receiver<NetworkEvent>,
}

impl NetworkLog {
    /// Waits for the next event. Returns `None` when the VM has ended. Who is more than
    /// 1000 events behind misses the oldest ones.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<NetworkEvent> {
        loop {
            match self.later.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
