use std::{fmt, net::IpAddr, str::FromStr};

use super::{HostName, PolicyError, PortRanges, Prefix};

/// What a rule of a policy is about: hosts, and ports of them.
///
/// ```
/// use vmcell::network::Rule;
///
/// for text in [
///     "pypi.org:443",
///     "*.example.org:80,443",       // all names below, not example.org itself
///     "10.1.0.0/16:8000-8999",
///     "[fd00::1]:5432",
///     "192.0.2.7",                  // all ports
/// ] {
///     let rule: Rule = text.parse()?;
///     assert_eq!(rule.to_string(), text);
/// }
/// # Ok::<(), vmcell::network::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    hosts: Hosts,
    ports: PortRanges,
}

/// The hosts of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Hosts {
    /// The host with a name.
    Name(HostName),
    /// All hosts with names below a name.
    Below(HostName),
    /// The hosts with addresses.
    Addresses(Prefix),
}

impl Rule {
    /// Creates a rule about a name, or with `*.` in front about all names below it.
    ///
    /// # Errors
    /// [`PolicyError::Name`]
    pub fn name(name: &str, ports: impl Into<PortRanges>) -> Result<Self, PolicyError> {
        let hosts = match name.strip_prefix("*.") {
            Some(above) => Hosts::Below(HostName::new(above)?),
            None => Hosts::Name(HostName::new(name)?),
        };
        Ok(Self {
            hosts,
            ports: ports.into(),
        })
    }

    /// Creates a rule about addresses.
    pub fn addresses(prefix: Prefix, ports: impl Into<PortRanges>) -> Self {
        Self {
            hosts: Hosts::Addresses(prefix),
            ports: ports.into(),
        }
    }

    /// Returns its ports.
    pub fn ports(&self) -> &PortRanges {
        &self.ports
    }

    /// Returns its addresses, if it is about addresses.
    pub fn prefix(&self) -> Option<Prefix> {
        match &self.hosts {
            Hosts::Addresses(prefix) => Some(*prefix),
            Hosts::Name(_) | Hosts::Below(_) => None,
        }
    }

    /// Returns whether it is about this host, a name or an address, and this port.
    #[cfg(feature = "tool")]
    pub(crate) fn covers(&self, host: &str, port: u16) -> bool {
        let has_host = match (host.parse::<IpAddr>(), HostName::new(host)) {
            (Ok(address), _) => self.has_address(address),
            (Err(_), Ok(name)) => self.has_name(&name),
            (Err(_), Err(_)) => false,
        };
        has_host && self.ports.contains(port)
    }

    /// Returns whether it is about a name, with whatever port.
    pub(super) fn has_name(&self, name: &HostName) -> bool {
        match &self.hosts {
            Hosts::Name(own) => own == name,
            Hosts::Below(above) => name.is_below(above),
            Hosts::Addresses(_) => false,
        }
    }

    /// Returns whether it is about an address, with whatever port.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.prefix().is_some_and(|prefix| prefix.contains(address))
    }
}

impl FromStr for Rule {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        if text.contains("//") {
            return Err(PolicyError::Name {
                name: text.to_owned(),
                reason: "write it without a scheme and a path",
            });
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (address, ports) = rest.split_once(']').ok_or_else(|| PolicyError::Address {
                text: text.to_owned(),
                reason: "a bracket closes it",
            })?;
            let ports = match ports.strip_prefix(':') {
                Some(ports) => ports.parse()?,
                None if ports.is_empty() => PortRanges::ALL,
                None => {
                    return Err(PolicyError::Ports {
                        text: ports.to_owned(),
                    });
                }
            };
            return Ok(Self::addresses(address.parse()?, ports));
        }
        // An IPv6 address without brackets has colons of its own.
        let (hosts, ports) = match text.rsplit_once(':') {
            Some((hosts, ports)) if !hosts.contains(':') => (hosts, ports.parse()?),
            _ => (text, PortRanges::ALL),
        };
        let looks_like_address =
            hosts.contains([':', '/']) || hosts.bytes().all(|byte| b"0123456789.".contains(&byte));
        match looks_like_address {
            true => Ok(Self::addresses(hosts.parse()?, ports)),
            false => Self::name(hosts, ports),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Name(name) => name.fmt(f)?,
            Hosts::Below(name) => write!(f, "*.{name}")?,
            Hosts::Addresses(prefix) if prefix.address().is_ipv6() && !self.ports.is_all() => {
                write!(f, "[{prefix}]")?;
            }
            Hosts::Addresses(prefix) => prefix.fmt(f)?,
        }
        match self.ports.is_all() {
            true => Ok(()),
            false => write!(f, ":{}", self.ports),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        for text in [
            "fd00::1",
            "fd00::/8",
            "[fd00::/8]:443",
            "*.a.b",
            "10.0.0.0/8",
            "a.b:1-2",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!("[fd00::1]".parse::<Rule>().unwrap().to_string(), "fd00::1");
        assert_eq!("A.B.:443".parse::<Rule>().unwrap().to_string(), "a.b:443");
        for text in [
            "",
            ":443",
            "*",
            "*.",
            "a.*.b",
            "a.b:",
            "a.b:x",
            "https://a.b",
            "1.2.3",
            "0x7f.1",
            "[::1",
            "[::1]443",
            "::1:443/8",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
