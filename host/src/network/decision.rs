use std::{
    borrow::Cow,
    fmt,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

/// What was decided about something that a program of a guest wanted of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// Its number in the VM, from 1 on.
    pub number: u64,
    /// When it was decided.
    pub time: SystemTime,
    /// What the program wanted.
    pub wanted: Wanted,
    /// What was decided.
    pub verdict: Verdict,
}

/// What a program of a guest wants of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Wanted {
    /// To know whether there is a host with this name. Names are those of the guest, made
    /// safe to print.
    Lookup {
        /// The name.
        name: String,
    },
    /// To connect to a host.
    Connection {
        /// Its name, or its address.
        host: String,
        /// The TCP port.
        port: u16,
    },
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// It is allowed.
    Allowed {
        /// The rule that allows it; `None` if all public hosts are allowed.
        rule: Option<String>,
        /// The address that is connected to; `None` for a look-up.
        address: Option<IpAddr>,
    },
    /// It is allowed, but did not succeed.
    Failed {
        /// Why.
        reason: String,
    },
    /// It is not allowed.
    Denied(DenialReason),
}

/// Why the policy does not allow something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DenialReason {
    /// No rule allows it.
    NoRule,
    /// This rule denies it.
    Rule(String),
    /// The address is not that of a public host, and no rule names it. Contains what it
    /// is.
    NotPublic(Cow<'static, str>),
    /// The guest's text is not the name of a host.
    NotAName,
    /// A limit is reached. Contains which one.
    Limit(Cow<'static, str>),
}

/// A connection that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConnectionEnd {
    /// The number of its [`Decision`].
    pub number: u64,
    /// How many bytes the program has sent.
    pub sent: u64,
    /// How many bytes it has received.
    pub received: u64,
    /// How long it was open.
    pub duration: Duration,
}

impl Decision {
    /// Returns whether it was denied.
    pub fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Denied(_))
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lookup { name } => f.write_str(name),
            Self::Connection { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Connection { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed { rule, .. } => match rule {
                Some(rule) => write!(f, "allowed by {rule}"),
                None => f.write_str("allowed, as all public hosts are"),
            },
            Self::Failed { reason } => write!(f, "allowed, but failed: {reason}"),
            Self::Denied(reason) => write!(f, "denied: {reason}"),
        }
    }
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRule => f.write_str("no rule allows it"),
            Self::Rule(rule) => write!(f, "the rule {rule}"),
            Self::NotPublic(what) => {
                write!(
                    f,
                    "the address is not public ({what}), and no rule names it"
                )
            }
            Self::NotAName => f.write_str("it is not a name"),
            Self::Limit(which) => f.write_str(which),
        }
    }
}
