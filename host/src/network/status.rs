use std::{net::IpAddr, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{NetworkPolicy, Rule, Wanted};

/// The policy of a VM, and how much its programs use the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetworkStatus {
    /// The name of the policy: see [`NetworkPolicy::name`].
    pub policy: String,
    /// Whether programs reach all public hosts.
    pub public: bool,
    /// Whether ports of the guest may be published.
    pub published_ports: bool,
    /// The rules that allow.
    pub allow: Vec<String>,
    /// The rules that deny.
    pub deny: Vec<String>,
    /// How much was used.
    pub totals: TrafficTotals,
    /// The open connections, the oldest first.
    pub connections: Vec<OpenConnection>,
}

/// How much the programs of a guest have used the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The status of a VM with this policy whose programs have not used the network.
impl From<&NetworkPolicy> for NetworkStatus {
    fn from(policy: &NetworkPolicy) -> Self {
        Self::new(policy, TrafficTotals::default(), Vec::new())
    }
}

impl NetworkStatus {
    pub(super) fn new(
        policy: &NetworkPolicy,
        totals: TrafficTotals,
        connections: Vec<OpenConnection>,
    ) -> Self {
        let texts = |rules: &[Rule]| rules.iter().map(Rule::to_string).collect();
        Self {
            policy: policy.name().to_owned(),
            public: policy.is_public(),
            published_ports: policy.has_published_ports(),
            allow: texts(policy.allowed()),
            deny: texts(policy.denied()),
            totals,
            connections,
        }
    }
}
