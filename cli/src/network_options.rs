//! What the programs of a new VM may reach.

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use vmcell::network::{self, HostName, NetworkPolicy, Rule};

/// Given to each option: one for all would last beyond them.
const HELP_HEADING: &str = "Network options";

/// The options for the network of a new VM.
#[derive(Debug, Default, Args)]
pub(crate) struct NetworkOptions {
    /// What programs may reach. With `egress`, all public hosts, or what `--allow`
    /// names; with `egress+published-ports`, `--publish` is allowed, too.
    /// Default: nothing, or what `--allow` names.
    #[arg(long, value_name = "POLICY", visible_alias = "network-policy", help_heading = HELP_HEADING)]
    network: Option<PolicyName>,
    /// Let programs connect to a host, and to nothing else: its name, `*.` and a
    /// name for all names below it, or an address or prefix; with ports
    /// (`pypi.org:443`, `10.0.0.0/8:80,8000-8999`), or without for all.
    #[arg(long, value_name = "HOST[:PORTS]", help_heading = HELP_HEADING)]
    allow: Vec<Rule>,
    /// Never let programs connect to a host, whatever else allows it.
    #[arg(long, value_name = "HOST[:PORTS]", help_heading = HELP_HEADING)]
    deny: Vec<Rule>,
    /// Use this address for NAME, which is then not resolved. It may be an
    /// address of this machine.
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = parse_host, help_heading = HELP_HEADING)]
    resolve: Vec<(HostName, IpAddr)>,
    /// Give programs an HTTP proxy, and set the environment variables that name
    /// it (`http_proxy`, `https_proxy`, `no_proxy`). None needs it to reach what
    /// is allowed; it tells them in words why something is not.
    #[arg(long, help_heading = HELP_HEADING)]
    proxy: bool,
}

/// The name of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// Programs reach nothing, and no port is published.
    Off,
    /// Programs reach other hosts.
    Egress,
    /// Programs reach other hosts, and ports can be published.
    #[value(name = "egress+published-ports")]
    EgressAndPublishedPorts,
}

impl NetworkOptions {
    /// Returns whether any of the options was given.
    pub(crate) fn is_set(&self) -> bool {
        let lists_are_empty =
            self.allow.is_empty() && self.deny.is_empty() && self.resolve.is_empty();
        self.network.is_some() || self.proxy || !lists_are_empty
    }

    /// Returns the environment variables for programs.
    pub(crate) fn variables(&self) -> &'static [(&'static str, &'static str)] {
        match self.proxy {
            true => &network::PROXY_VARIABLES,
            false => &[],
        }
    }

    /// Returns the policy of a VM that publishes ports or not; `None` if no option was
    /// given.
    pub(crate) fn policy(self, publishes: bool) -> anyhow::Result<Option<NetworkPolicy>> {
        if !self.is_set() {
            return Ok(None);
        }
        let policy = match (self.network, self.allow.is_empty()) {
            (None, true) => anyhow::bail!(
                "--deny, --resolve and --proxy need something that is allowed: add --allow or \
                 --network egress"
            ),
            (Some(PolicyName::Off), true) if self.proxy => {
                anyhow::bail!("--proxy has no effect with --network off: leave one out")
            }
            (Some(PolicyName::Off), true) => NetworkPolicy::off(),
            (Some(PolicyName::Off), false) => {
                anyhow::bail!("--allow has no effect with --network off: leave one out")
            }
            (Some(PolicyName::Egress | PolicyName::EgressAndPublishedPorts), true) => {
                NetworkPolicy::public()
            }
            (_, false) => NetworkPolicy::rules(),
        };
        let may_publish = match self.network {
            Some(name) => name == PolicyName::EgressAndPublishedPorts,
            // Whoever writes `--publish` means it.
            None => publishes,
        };
        let mut policy = policy.published_ports(may_publish).proxy(self.proxy);
        for rule in self.allow {
            policy = policy.allow_rule(rule);
        }
        for rule in self.deny {
            policy = policy.deny_rule(rule);
        }
        for (name, address) in self.resolve {
            policy = policy.host(name.as_str(), address)?;
        }
        Ok(Some(policy))
    }
}

fn parse_host(text: &str) -> Result<(HostName, IpAddr), String> {
    let (name, address) = text.split_once('=').ok_or("expected NAME=ADDRESS")?;
    let name = HostName::new(name).map_err(|error| error.to_string())?;
    let address = address
        .parse()
        .map_err(|_| format!("{address:?} is not an address"))?;
    Ok((name, address))
}
