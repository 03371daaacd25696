use std::{collections::BTreeMap, net::IpAddr};

use serde::{Deserialize, Serialize};

use super::{
    HostName, NetworkLimits, PolicyError, Prefix, Rule,
    address::{special_use, unmapped},
    decision::DenialReason,
    policy_record::PolicyRecord,
    proxy::PROXY_NAME,
};

/// What the programs of a guest may connect to.
///
/// ```
/// use vmcell::network::NetworkPolicy;
///
/// let policy = NetworkPolicy::rules()
///     .allow("pypi.org:443")?
///     .allow("*.pythonhosted.org:443")?
///     .deny("10.0.0.0/8")?;
/// # Ok::<(), vmcell::network::PolicyError>(())
/// ```
///
/// What is denied is never allowed. Addresses that are not those of public hosts, such as
/// those of this machine and of its networks, are reached only if a rule names the
/// address, or [`host`](Self::host) gives it to an allowed name: a name alone does not
/// allow what its owner lets it resolve to.
///
/// It can be written to files, such as JSON, and read from them: see [`serde`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PolicyRecord", into = "PolicyRecord")]
#[must_use]
pub struct NetworkPolicy {
    scope: Scope,
    allowed: Vec<Rule>,
    denied: Vec<Rule>,
    hosts: BTreeMap<HostName, Vec<IpAddr>>,
    limits: NetworkLimits,
    has_published_ports: bool,
    has_proxy: bool,
}

/// What is allowed without a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Nothing, and rules allow nothing.
    Off,
    /// Nothing.
    Rules,
    /// All public hosts.
    Public,
}

/// What a policy says about a name, before it is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameVerdict {
    /// It is resolved.
    Resolve {
        /// The rule that allows it; `None` if all public hosts are.
        rule: Option<String>,
    },
    /// It has these addresses.
    Fixed {
        rule: Option<String>,
        addresses: Vec<IpAddr>,
    },
    Denied(DenialReason),
}

impl NetworkPolicy {
    const fn new(scope: Scope, has_published_ports: bool) -> Self {
        Self {
            scope,
            allowed: Vec::new(),
            denied: Vec::new(),
            hosts: BTreeMap::new(),
            limits: NetworkLimits::new(),
            has_published_ports,
            has_proxy: false,
        }
    }

    /// Nothing leaves the guest, and none of its ports can be published.
    pub const fn off() -> Self {
        Self::new(Scope::Off, false)
    }

    /// Programs reach what [`allow`](Self::allow) names, and nothing else.
    pub const fn rules() -> Self {
        Self::new(Scope::Rules, false)
    }

    /// Programs reach all public hosts. They can send anything to anybody, also in the
    /// names that they look up.
    pub const fn public() -> Self {
        Self::new(Scope::Public, false)
    }

    /// Allows programs to connect to hosts: see [`Rule`].
    ///
    /// # Errors
    /// [`PolicyError`] if it is not a rule.
    pub fn allow(self, rule: &str) -> Result<Self, PolicyError> {
        Ok(self.allow_rule(rule.parse()?))
    }

    /// Same as [`allow`](Self::allow).
    pub fn allow_rule(mut self, rule: Rule) -> Self {
        self.allowed.push(rule);
        self
    }

    /// Denies connections to hosts, whatever else allows them: see [`Rule`].
    ///
    /// # Errors
    /// [`PolicyError`] if it is not a rule.
    pub fn deny(self, rule: &str) -> Result<Self, PolicyError> {
        Ok(self.deny_rule(rule.parse()?))
    }

    /// Same as [`deny`](Self::deny).
    pub fn deny_rule(mut self, rule: Rule) -> Self {
        self.denied.push(rule);
        self
    }

    /// Sets the address of a name, which is then not resolved, in addition to others that
    /// were set. It may be an address of this machine or of its networks. The name must
    /// be allowed, too.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use vmcell::network::NetworkPolicy;
    ///
    /// // A server of this machine.
    /// let policy = NetworkPolicy::rules()
    ///     .allow("index.test:8080")?
    ///     .host("index.test", Ipv4Addr::LOCALHOST)?;
    /// # Ok::<(), vmcell::network::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::Name`]
    pub fn host(mut self, name: &str, address: impl Into<IpAddr>) -> Result<Self, PolicyError> {
        let addresses = self.hosts.entry(HostName::new(name)?).or_default();
        addresses.push(address.into());
        Ok(self)
    }

    /// Sets how much programs may use the network.
    pub const fn limits(mut self, limits: NetworkLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether ports of the guest may be [published](crate::port).
    pub const fn published_ports(mut self, allow: bool) -> Self {
        self.has_published_ports = allow;
        self
    }

    /// Sets whether there is an HTTP proxy for the programs of the guest at
    /// [`PROXY`](super::PROXY).
    ///
    /// No program needs it to reach what the policy allows. A proxy can tell a program in
    /// words why it may not connect, and serves those that insist on one, which get its
    /// address from [`PROXY_VARIABLES`](super::PROXY_VARIABLES):
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use vmcell::{Vm, network::{NetworkPolicy, PROXY_VARIABLES}};
    ///
    /// let policy = NetworkPolicy::rules().allow("pypi.org:443")?.proxy(true);
    /// let vm = Vm::builder().image("debian.ext4").network(policy).start().await?;
    /// let argv = ["curl", "-sS", "https://pypi.org/simple/"];
    /// let page = vm.exec_with(argv, |curl| curl.envs(PROXY_VARIABLES)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn proxy(mut self, on: bool) -> Self {
        self.has_proxy = on;
        self
    }

    /// Returns whether nothing leaves the guest.
    pub fn is_off(&self) -> bool {
        self.scope == Scope::Off
    }

    /// Returns whether programs reach all public hosts.
    pub fn is_public(&self) -> bool {
        self.scope == Scope::Public
    }

    /// Returns the rules that allow.
    pub fn allowed(&self) -> &[Rule] {
        &self.allowed
    }

    /// Returns the rules that deny.
    pub fn denied(&self) -> &[Rule] {
        &self.denied
    }

    /// Returns the addresses of names that are not resolved.
    pub(super) fn hosts(&self) -> &BTreeMap<HostName, Vec<IpAddr>> {
        &self.hosts
    }

    /// Returns how much programs may use the network.
    pub fn get_limits(&self) -> NetworkLimits {
        self.limits
    }

    /// Returns whether ports of the guest may be published.
    pub fn has_published_ports(&self) -> bool {
        self.has_published_ports
    }

    /// Returns whether there is an HTTP proxy for the programs of the guest.
    pub fn has_proxy(&self) -> bool {
        self.has_proxy && !self.is_off()
    }

    /// Returns the name of its kind: `off`, `egress` or `egress+published-ports`.
    pub fn name(&self) -> &'static str {
        match (self.is_off(), self.has_published_ports) {
            (true, _) => "off",
            (false, false) => "egress",
            (false, true) => "egress+published-ports",
        }
    }

    /// Returns the addresses that it names and that are not public.
    pub(super) fn special_prefixes(&self) -> impl Iterator<Item = Prefix> {
        let prefixes = self.allowed.iter().filter_map(Rule::prefix);
        prefixes.filter(|prefix| special_use(prefix.address()).is_some())
    }

    /// Returns whether a program may learn that there is a host with this name. Nothing
    /// is resolved for it.
    pub(super) fn allows_lookup(&self, name: &HostName) -> bool {
        let denied = |rule: &Rule| rule.has_name(name) && rule.ports().is_all();
        let allowed = |rule: &Rule| rule.has_name(name);
        match self.scope {
            _ if self.has_proxy() && name.as_str() == PROXY_NAME => true,
            _ if self.denied.iter().any(denied) => false,
            Scope::Off => false,
            Scope::Rules => self.allowed.iter().any(allowed),
            Scope::Public => true,
        }
    }

    /// Decides about a connection to a name, before it is resolved.
    pub(super) fn check_name(&self, name: &HostName, port: u16) -> NameVerdict {
        let matches = |rule: &&Rule| rule.has_name(name) && rule.ports().contains(port);
        if let Some(rule) = self.denied.iter().find(matches) {
            return NameVerdict::Denied(DenialReason::Rule(rule.to_string()));
        }
        let rule = match (self.scope, self.allowed.iter().find(matches)) {
            (Scope::Rules | Scope::Public, Some(rule)) => Some(rule.to_string()),
            (Scope::Public, None) => None,
            (Scope::Off, _) | (Scope::Rules, None) => {
                return NameVerdict::Denied(DenialReason::NoRule);
            }
        };
        match self.hosts.get(name) {
            Some(addresses) => NameVerdict::Fixed {
                rule,
                addresses: addresses.clone(),
            },
            None => NameVerdict::Resolve { rule },
        }
    }

    /// Decides about an address that a name has resolved to. `is_fixed` says that the
    /// policy itself gave it to the name.
    pub(super) fn check_resolved(
        &self,
        address: IpAddr,
        port: u16,
        is_fixed: bool,
    ) -> Result<(), DenialReason> {
        let address = unmapped(address);
        self.check_denied(address, port)?;
        match special_use(address) {
            Some(_) if is_fixed || self.address_rule(address, port).is_some() => Ok(()),
            Some(what) => Err(DenialReason::NotPublic(what.into())),
            None => Ok(()),
        }
    }

    /// Decides about a connection to an address that a program has named. Returns the
    /// rule that allows it; `None` if all public hosts are.
    pub(super) fn check_address(
        &self,
        address: IpAddr,
        port: u16,
    ) -> Result<Option<String>, DenialReason> {
        let address = unmapped(address);
        self.check_denied(address, port)?;
        match (self.scope, self.address_rule(address, port)) {
            (Scope::Off, _) => Err(DenialReason::NoRule),
            (_, Some(rule)) => Ok(Some(rule.to_string())),
            (Scope::Rules, None) => Err(DenialReason::NoRule),
            (Scope::Public, None) => match special_use(address) {
                Some(what) => Err(DenialReason::NotPublic(what.into())),
                None => Ok(None),
            },
        }
    }

    fn check_denied(&self, address: IpAddr, port: u16) -> Result<(), DenialReason> {
        let denies = |rule: &&Rule| rule.has_address(address) && rule.ports().contains(port);
        match self.denied.iter().find(denies) {
            Some(rule) => Err(DenialReason::Rule(rule.to_string())),
            None => Ok(()),
        }
    }

    fn address_rule(&self, address: IpAddr, port: u16) -> Option<&Rule> {
        let allows = |rule: &&Rule| rule.has_address(address) && rule.ports().contains(port);
        self.allowed.iter().find(allows)
    }
}

/// Nothing leaves the guest.
impl Default for NetworkPolicy {
    fn default() -> Self {
        Self::off()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::new(text).unwrap()
    }

    fn is_name_allowed(policy: &NetworkPolicy, text: &str, port: u16) -> bool {
        !matches!(policy.check_name(&name(text), port), NameVerdict::Denied(_))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn rules_allow_what_they_name_on_their_ports() {
        let policy = NetworkPolicy::rules().allow("a.test:443").unwrap();
        let policy = policy.allow("*.b.test").unwrap();
        let policy = policy.deny("bad.b.test").unwrap();
        let policy = policy.deny("odd.b.test:25").unwrap();
        for (host, port, expected) in [
            ("a.test", 443, true),
            ("a.test", 80, false),
            ("x.a.test", 443, false),
            ("b.test", 443, false),
            ("x.b.test", 443, true),
            ("bad.b.test", 443, false),
            ("odd.b.test", 443, true),
            ("odd.b.test", 25, false),
        ] {
            assert_eq!(
                is_name_allowed(&policy, host, port),
                expected,
                "{host}:{port}"
            );
        }
        for (host, expected) in [
            ("a.test", true),
            ("x.b.test", true),
            ("bad.b.test", false),
            ("odd.b.test", true),
            ("c.test", false),
        ] {
            assert_eq!(policy.allows_lookup(&name(host)), expected, "{host}");
        }
        // Where only names are allowed, their addresses are not.
        assert!(policy.check_address(address("1.1.1.1"), 443).is_err());
    }

    #[test]
    fn off_is_off_and_public_is_public_only() {
        let off = NetworkPolicy::off().allow("a.test").unwrap();
        let off = off.allow("1.1.1.1").unwrap();
        assert!(!is_name_allowed(&off, "a.test", 443));
        assert!(!off.allows_lookup(&name("a.test")));
        assert!(off.check_address(address("1.1.1.1"), 443).is_err());
        let public = NetworkPolicy::public().deny("9.9.9.9").unwrap();
        assert!(is_name_allowed(&public, "a.test", 443));
        assert!(public.check_address(address("1.1.1.1"), 443).is_ok());
        for denied in [
            "9.9.9.9",
            "::ffff:9.9.9.9",
            "127.0.0.1",
            "169.254.169.254",
            "fd00::1",
        ] {
            assert!(
                public.check_address(address(denied), 443).is_err(),
                "{denied}"
            );
            let resolved = public.check_resolved(address(denied), 443, false);
            assert!(resolved.is_err(), "{denied}");
        }
    }

    #[test]
    fn a_name_reaches_a_special_address_only_if_the_policy_says_so() {
        let policy = NetworkPolicy::rules().allow("a.test:443").unwrap();
        let loopback = address("127.0.0.1");
        assert_eq!(
            policy.check_resolved(loopback, 443, false),
            Err(DenialReason::NotPublic("loopback".into()))
        );
        assert_eq!(
            policy.check_resolved(address("1.1.1.1"), 443, false),
            Ok(())
        );
        let by_rule = policy.clone().allow("127.0.0.1:443").unwrap();
        assert_eq!(by_rule.check_resolved(loopback, 443, false), Ok(()));
        assert!(by_rule.check_resolved(loopback, 80, false).is_err());
        let fixed = policy.host("A.test", loopback).unwrap();
        let NameVerdict::Fixed { addresses, .. } = fixed.check_name(&name("a.test"), 443) else {
            panic!("it is not resolved");
        };
        assert_eq!(addresses, [loopback]);
        assert_eq!(fixed.check_resolved(loopback, 443, true), Ok(()));
        let denied = fixed.deny("127.0.0.0/8").unwrap();
        assert!(denied.check_resolved(loopback, 443, true).is_err());
    }
}
