use std::{collections::BTreeMap, net::IpAddr};

use serde::{Deserialize, Serialize};

use super::{NetworkLimits, NetworkPolicy, PolicyError};

/// A policy as it is written to files. What a record leaves out is as in a policy that
/// allows nothing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyRecord {
    scope: ScopeRecord,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allow: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    hosts: BTreeMap<String, Vec<IpAddr>>,
    #[serde(default)]
    limits: LimitsRecord,
    #[serde(default)]
    published_ports: bool,
    #[serde(default)]
    proxy: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScopeRecord {
    Off,
    Rules,
    Public,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsRecord {
    connections: usize,
    per_minute: u32,
    bytes: Option<u64>,
}

impl Default for LimitsRecord {
    fn default() -> Self {
        let limits = NetworkLimits::new();
        Self {
            connections: limits.connections,
            per_minute: limits.per_minute,
            bytes: limits.bytes,
        }
    }
}

impl From<NetworkPolicy> for PolicyRecord {
    fn from(policy: NetworkPolicy) -> Self {
        let limits = policy.get_limits();
        let text = |rules: &[super::Rule]| rules.iter().map(ToString::to_string).collect();
        let hosts = policy.hosts().iter();
        Self {
            scope: match (policy.is_off(), policy.is_public()) {
                (true, _) => ScopeRecord::Off,
                (false, false) => ScopeRecord::Rules,
                (false, true) => ScopeRecord::Public,
            },
            allow: text(policy.allowed()),
            deny: text(policy.denied()),
            hosts: hosts
                .map(|(name, addresses)| (name.to_string(), addresses.clone()))
                .collect(),
            limits: LimitsRecord {
                connections: limits.connections,
                per_minute: limits.per_minute,
                bytes: limits.bytes,
            },
            published_ports: policy.has_published_ports(),
            proxy: policy.has_proxy(),
        }
    }
}

impl TryFrom<PolicyRecord> for NetworkPolicy {
    type Error = PolicyError;

    fn try_from(record: PolicyRecord) -> Result<Self, PolicyError> {
        let mut policy = match record.scope {
            ScopeRecord::Off => Self::off(),
            ScopeRecord::Rules => Self::rules(),
            ScopeRecord::Public => Self::public(),
        };
        for rule in &record.allow {
            policy = policy.allow(rule)?;
        }
        for rule in &record.deny {
            policy = policy.deny(rule)?;
        }
        for (name, addresses) in &record.hosts {
            for address in addresses {
                policy = policy.host(name, *address)?;
            }
        }
        let limits = NetworkLimits {
            connections: record.limits.connections,
            per_minute: record.limits.per_minute,
            bytes: record.limits.bytes,
        };
        Ok(policy
            .limits(limits)
            .published_ports(record.published_ports)
            .proxy(record.proxy))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_policy_is_the_same_after_it_was_written_and_read() {
        let rules = NetworkPolicy::rules()
            .allow("*.pypi.org:443")
            .and_then(|policy| policy.allow("10.0.0.0/8:80,8000-8999"))
            .and_then(|policy| policy.deny("bad.pypi.org"))
            .and_then(|policy| policy.host("index.test", Ipv4Addr::LOCALHOST))
            .unwrap()
            .limits(NetworkLimits::new().connections(5).bytes(1 << 40))
            .proxy(true);
        for policy in [
            NetworkPolicy::off(),
            NetworkPolicy::off().published_ports(true),
            NetworkPolicy::public(),
            rules,
        ] {
            let json = serde_json::to_string(&policy).unwrap();
            let read: NetworkPolicy = serde_json::from_str(&json).unwrap();
            assert_eq!(read, policy, "{json}");
        }
    }

    #[test]
    fn what_is_not_a_policy_is_refused() {
        for json in [
            r#"{}"#,
            r#"{"scope": "everything"}"#,
            r#"{"scope": "rules", "allow": ["http://a.test"]}"#,
            r#"{"scope": "rules", "alow": []}"#,
        ] {
            assert!(
                serde_json::from_str::<NetworkPolicy>(json).is_err(),
                "{json}"
            );
        }
    }
}
