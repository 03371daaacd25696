//! Connects to a host in place of a program of the guest.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt as _, sync::watch, time::timeout};
use vmcell_wire::network::Refusal;

use super::{
    Destination, HostName, NetworkPolicy, Upstream, Verdict, Wanted,
    decision::DenialReason,
    dialer::UpstreamKind,
    policy::NameVerdict,
    state::{Admission, Metered, NetworkState},
};
#[cfg(feature = "broker")]
use crate::broker::BrokeredHost;
use crate::{
    port::{Connection, Meter as _, relay, relay_stream, reset_on_close},
    printable,
};

/// A connection that a program of the guest wants.
#[derive(Debug)]
pub(super) struct WantedConnection {
    pub(super) target: WantedTarget,
    pub(super) port: u16,
}

/// What a program wants to connect to.
#[derive(Debug)]
pub(super) enum WantedTarget {
    Name(HostName),
    /// Text that is not a name, made safe to print.
    NotAName(String),
    Address(IpAddr),
}

impl WantedTarget {
    /// Reads the name of a host.
    pub(super) fn from_name(name: &str) -> Self {
        match HostName::new(name) {
            Ok(name) => Self::Name(name),
            Err(_) => Self::NotAName(printable(name.as_bytes()).into_owned()),
        }
    }
}

/// How long a resolver may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long connecting to one address may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(15);

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

impl WantedConnection {
    pub(super) fn wanted(&self) -> Wanted {
        let host = match &self.target {
            WantedTarget::Name(name) => name.to_string(),
            WantedTarget::NotAName(text) => text.clone(),
            WantedTarget::Address(address) => address.to_string(),
        };
        Wanted::Connection {
            host,
            port: self.port,
        }
    }

    /// Decides about it, connects, and records the decision.
    ///
    /// # Errors
    /// Why it was refused.
    pub(super) async fn connect(
        self,
        state: &Arc<NetworkState>,
    ) -> Result<UpstreamConnection, Refusal> {
        let mut policies = state.watch_policy();
        let policy = policies.borrow_and_update().clone();
        // Until it is open, or refused.
        let mut admission = None;
        match self.dial(&policy, state, &mut admission).await {
            Ok((allowed, upstream)) => Ok(UpstreamConnection {
                metered: Arc::new(state.open(self.wanted(), allowed.rule.clone(), allowed.address)),
                #[cfg(feature = "broker")]
                brokered: self.brokered(state),
                wanted: self,
                allowed,
                policies,
                upstream,
            }),
            Err(verdict) => {
                let refusal = match &verdict {
                    Verdict::Denied(DenialReason::Limit(_)) => Refusal::Limit,
                    Verdict::Denied(_) => Refusal::NotAllowed,
                    Verdict::Failed { .. } | Verdict::Allowed { .. } => Refusal::Unreachable,
                };
                state.decided(self.wanted(), verdict);
                Err(refusal)
            }
        }
    }

    /// Returns the host if it gets values of secrets.
    #[cfg(feature = "broker")]
    fn brokered(&self, state: &NetworkState) -> Option<Arc<BrokeredHost>> {
        match (&state.hooks.broker, &self.target) {
            (Some(broker), WantedTarget::Name(name)) => broker.host(name, self.port),
            _ => None,
        }
    }

    async fn dial(
        &self,
        policy: &NetworkPolicy,
        state: &Arc<NetworkState>,
        admission: &mut Option<Admission>,
    ) -> Result<(Allowed, Upstream), Verdict> {
        let (rule, addresses, is_fixed) = self.addresses(policy, state, admission).await?;
        let mut verdict = failed("the name has no address");
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            // Also a literal address, which costs nothing.
            if let WantedTarget::Name(_) = &self.target
                && let Err(reason) = policy.check_resolved(address, self.port, is_fixed)
            {
                verdict = Verdict::Denied(reason);
                continue;
            }
            let destination = Destination {
                name: match &self.target {
                    WantedTarget::Name(name) => Some(name.clone()),
                    WantedTarget::NotAName(_) | WantedTarget::Address(_) => None,
                },
                address,
                port: self.port,
            };
            let dialling = state.hooks.dialer.dial(&destination);
            match timeout(DIAL_TIMEOUT, dialling).await {
                Ok(Ok(upstream)) => {
                    let allowed = Allowed {
                        rule,
                        address,
                        is_fixed,
                    };
                    return Ok((allowed, upstream));
                }
                Ok(Err(error)) => verdict = failed(error),
                Err(_) => verdict = failed("it does not answer"),
            }
        }
        Err(verdict)
    }

    /// Returns the rule that allows it, and its addresses, which are not checked yet if
    /// they are those of a name.
    async fn addresses(
        &self,
        policy: &NetworkPolicy,
        state: &Arc<NetworkState>,
        admission: &mut Option<Admission>,
    ) -> Result<(Option<String>, Vec<IpAddr>, bool), Verdict> {
        let mut admit = || match state.admit(policy) {
            Ok(admitted) => {
                *admission = Some(admitted);
                Ok(())
            }
            Err(limit) => Err(Verdict::Denied(DenialReason::Limit(limit.into()))),
        };
        match &self.target {
            WantedTarget::NotAName(_) => Err(Verdict::Denied(DenialReason::NotAName)),
            WantedTarget::Address(address) => {
                let rule = policy.check_address(*address, self.port);
                let rule = rule.map_err(Verdict::Denied)?;
                admit()?;
                Ok((rule, vec![*address], false))
            }
            WantedTarget::Name(name) => match policy.check_name(name, self.port) {
                NameVerdict::Denied(reason) => Err(Verdict::Denied(reason)),
                NameVerdict::Fixed { rule, addresses } => {
                    admit()?;
                    Ok((rule, addresses, true))
                }
                NameVerdict::Resolve { rule } => {
                    admit()?;
                    let resolving = state.hooks.resolver.resolve(name);
                    match timeout(RESOLVE_TIMEOUT, resolving).await {
                        Ok(Ok(addresses)) => Ok((rule, addresses, false)),
                        Ok(Err(error)) => Err(failed(error)),
                        Err(_) => Err(failed("the resolver does not answer")),
                    }
                }
            },
        }
    }

    /// Returns whether another policy allows the connection as it is.
    fn is_still_allowed(&self, policy: &NetworkPolicy, allowed: &Allowed) -> bool {
        match &self.target {
            WantedTarget::NotAName(_) => false,
            WantedTarget::Address(address) => policy.check_address(*address, self.port).is_ok(),
            WantedTarget::Name(name) => {
                let is_fixed = match policy.check_name(name, self.port) {
                    NameVerdict::Denied(_) => return false,
                    NameVerdict::Fixed { addresses, .. } => addresses.contains(&allowed.address),
                    NameVerdict::Resolve { .. } => false,
                };
                let resolved = policy.check_resolved(allowed.address, self.port, is_fixed);
                is_fixed >= allowed.is_fixed && resolved.is_ok()
            }
        }
    }
}

/// A connection to a host, in place of a program of the guest.
#[derive(Debug)]
pub(super) struct UpstreamConnection {
    metered: Arc<Metered>,
    #[cfg(feature = "broker")]
    brokered: Option<Arc<BrokeredHost>>,
    wanted: WantedConnection,
    allowed: Allowed,
    policies: watch::Receiver<Arc<NetworkPolicy>>,
    upstream: Upstream,
}

impl UpstreamConnection {
    /// Copies bytes until both sides have closed their direction, or the policy does not
    /// allow it any more. `connecting` returns the connection of the program, and what it
    /// has sent already.
    pub(super) async fn relay(
        self,
        connecting: impl Future<Output = io::Result<(Connection, Vec<u8>)>>,
    ) {
        let Self {
            metered,
            #[cfg(feature = "broker")]
            brokered,
            wanted,
            allowed,
            mut policies,
            upstream,
        } = self;
        let number = metered.number;
        let relaying = async {
            #[cfg(feature = "broker")]
            if let Some(host) = brokered {
                return host.serve(connecting, upstream, metered.clone()).await;
            }
            relay_to_guest(connecting, upstream, &metered).await
        };
        tokio::pin!(relaying);
        loop {
            tokio::select! {
                relayed = &mut relaying => {
                    if let Err(error) = relayed {
                        tracing::debug!(number, %error, "a connection of a guest broke");
                    }
                    return;
                }
                changed = policies.changed() => {
                    let policy = policies.borrow_and_update().clone();
                    if changed.is_err() || !wanted.is_still_allowed(&policy, &allowed) {
                        tracing::debug!(number, "a connection is no longer allowed");
                        return;
                    }
                }
            }
        }
    }
}

/// Why a connection was allowed, and to which address.
#[derive(Debug)]
struct Allowed {
    rule: Option<String>,
    address: IpAddr,
    is_fixed: bool,
}

fn failed(reason: impl ToString) -> Verdict {
    Verdict::Failed {
        reason: reason.to_string(),
    }
}

/// Copies bytes until both sides have closed their direction.
async fn relay_to_guest(
    connecting: impl Future<Output = io::Result<(Connection, Vec<u8>)>>,
    mut upstream: Upstream,
    metered: &Metered,
) -> io::Result<()> {
    // First, so that whatever happens resets it.
    if let UpstreamKind::Tcp(stream) = &upstream.0 {
        reset_on_close(stream)?;
    }
    let (connection, sent) = connecting.await?;
    metered.sent(sent.len())?;
    match &mut upstream.0 {
        UpstreamKind::Tcp(stream) => stream.write_all(&sent).await?,
        UpstreamKind::Other(stream) => stream.write_all(&sent).await?,
    }
    match upstream.0 {
        UpstreamKind::Tcp(mut stream) => relay(&mut stream, connection, metered).await,
        UpstreamKind::Other(stream) => relay_stream(stream, connection, metered).await,
    }
}
