use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};

use super::{
    ConnectionEnd, Decision, NetworkEvent, NetworkHooks, NetworkPolicy, OpenConnection,
    TrafficTotals, Verdict, Wanted,
};
use crate::port::Meter;

/// The network of a VM, as its owner has it.
#[derive(Debug)]
pub(crate) struct NetworkState {
    policy: watch::Sender<Arc<NetworkPolicy>>,
    pub(super) hooks: NetworkHooks,
    totals: Totals,
    inner: Mutex<Inner>,
    events: broadcast::Sender<NetworkEvent>,
}

#[derive(Debug, Default)]
struct Totals {
    sent: AtomicU64,
    received: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    decisions: u64,
    denials: u64,
    /// The last of them.
    recent: VecDeque<NetworkEvent>,
    open: BTreeMap<u64, Arc<Traffic>>,
    /// How many connections are being made.
    beginning: usize,
    minute: Option<Minute>,
}

/// The connections that were made in a minute.
#[derive(Clone, Copy, Debug)]
struct Minute {
    began: Instant,
    connections: u32,
}

/// How many events are kept.
const KEPT_EVENTS: usize = 1000;

const MINUTE: Duration = Duration::from_secs(60);

/// The bytes of an open connection.
#[derive(Debug)]
pub(super) struct Traffic {
    wanted: Wanted,
    address: IpAddr,
    began: SystemTime,
    sent: AtomicU64,
    received: AtomicU64,
}

impl NetworkState {
    pub(crate) fn new(policy: NetworkPolicy, hooks: NetworkHooks) -> Self {
        Self {
            policy: watch::Sender::new(Arc::new(policy)),
            hooks,
            totals: Totals::default(),
            inner: Mutex::default(),
            events: broadcast::Sender::new(KEPT_EVENTS),
        }
    }

    pub(super) fn policy(&self) -> Arc<NetworkPolicy> {
        self.policy.borrow().clone()
    }

    /// Returns a receiver of changes of the policy.
    pub(super) fn watch_policy(&self) -> watch::Receiver<Arc<NetworkPolicy>> {
        self.policy.subscribe()
    }

    pub(super) fn set_policy(&self, policy: NetworkPolicy) {
        self.policy.send_replace(Arc::new(policy));
    }

    /// Returns a receiver of all later events, and those that are kept.
    pub(super) fn events(&self) -> (Vec<NetworkEvent>, broadcast::Receiver<NetworkEvent>) {
        let inner = self.lock();
        let later = self.events.subscribe();
        (inner.recent.iter().cloned().collect(), later)
    }

    /// Records a decision, and tells everybody of it.
    pub(super) fn decided(&self, wanted: Wanted, verdict: Verdict) {
        let decision = self.record(&mut self.lock(), wanted, verdict);
        self.observe(&decision);
    }

    /// Records a decision under the lock, so that who begins to follow gets each event
    /// once.
    fn record(&self, inner: &mut Inner, wanted: Wanted, verdict: Verdict) -> Decision {
        inner.decisions += 1;
        let decision = Decision {
            number: inner.decisions,
            time: SystemTime::now(),
            wanted,
            verdict,
        };
        inner.denials += u64::from(decision.is_denied());
        let event = NetworkEvent::Decided(decision.clone());
        inner.keep(event.clone());
        // Fails if nobody follows.
        let _ = self.events.send(event);
        decision
    }

    fn observe(&self, decision: &Decision) {
        tracing::debug!(number = decision.number, wanted = %decision.wanted,
            verdict = %decision.verdict, "network");
        if let Some(observer) = &self.hooks.observer {
            observer.decided(decision);
        }
    }

    /// Returns what was denied since a time.
    pub(crate) fn denials_since(&self, time: SystemTime) -> Vec<String> {
        let inner = self.lock();
        let recent = inner.recent.iter().rev().map_while(|event| match event {
            NetworkEvent::Decided(decision) if decision.time < time => None,
            NetworkEvent::Decided(decision) if decision.is_denied() => {
                Some(Some(decision.wanted.to_string()))
            }
            NetworkEvent::Decided(_) | NetworkEvent::Ended(_) => Some(None),
        });
        let mut denials: Vec<_> = recent.flatten().collect();
        denials.sort();
        denials.dedup();
        denials
    }

    /// Counts one more connection, or returns which limit does not allow it.
    pub(super) fn admit(
        self: &Arc<Self>,
        policy: &NetworkPolicy,
    ) -> Result<Admission, &'static str> {
        let limits = policy.get_limits();
        let mut inner = self.lock();
        if inner.open.len() + inner.beginning >= limits.connections {
            return Err("too many connections at once");
        }
        if limits.bytes.is_some_and(|limit| self.totals.all() >= limit) {
            return Err("too many bytes");
        }
        let now = Instant::now();
        let minute = match inner.minute {
            Some(minute) if now.duration_since(minute.began) < MINUTE => minute,
            _ => Minute {
                began: now,
                connections: 0,
            },
        };
        if minute.connections >= limits.per_minute {
            return Err("too many connections in a minute");
        }
        inner.minute = Some(Minute {
            connections: minute.connections + 1,
            ..minute
        });
        inner.beginning += 1;
        Ok(Admission(self.clone()))
    }

    /// Records a connection that is allowed, and that is open until the returned value is
    /// dropped.
    pub(super) fn open(
        self: &Arc<Self>,
        wanted: Wanted,
        rule: Option<String>,
        address: IpAddr,
    ) -> Metered {
        let traffic = Arc::new(Traffic {
            wanted: wanted.clone(),
            address,
            began: SystemTime::now(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let verdict = Verdict::Allowed {
            rule,
            address: Some(address),
        };
        let mut inner = self.lock();
        let decision = self.record(&mut inner, wanted, verdict);
        let number = decision.number;
        inner.open.insert(number, traffic.clone());
        drop(inner);
        self.observe(&decision);
        Metered {
            number,
            began: Instant::now(),
            traffic,
            state: self.clone(),
        }
    }

    fn ended(&self, connection: ConnectionEnd) {
        let mut inner = self.lock();
        inner.open.remove(&connection.number);
        let event = NetworkEvent::Ended(connection.clone());
        inner.keep(event.clone());
        let _ = self.events.send(event);
        drop(inner);
        if let Some(observer) = &self.hooks.observer {
            observer.ended(&connection);
        }
    }

    pub(super) fn connections(&self) -> Vec<OpenConnection> {
        let inner = self.lock();
        let open = inner.open.iter().map(|(number, traffic)| OpenConnection {
            number: *number,
            wanted: traffic.wanted.clone(),
            address: traffic.address,
            began: traffic.began,
            sent: traffic.sent.load(Ordering::Relaxed),
            received: traffic.received.load(Ordering::Relaxed),
        });
        open.collect()
    }

    pub(super) fn totals(&self) -> TrafficTotals {
        let inner = self.lock();
        TrafficTotals {
            decisions: inner.decisions,
            denials: inner.denials,
            sent: self.totals.sent.load(Ordering::Relaxed),
            received: self.totals.received.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    fn all(&self) -> u64 {
        let sent = self.sent.load(Ordering::Relaxed);
        sent.saturating_add(self.received.load(Ordering::Relaxed))
    }
}

impl Inner {
    fn keep(&mut self, event: NetworkEvent) {
        if self.recent.len() >= KEPT_EVENTS {
            self.recent.pop_front();
        }
        self.recent.push_back(event);
    }
}

/// Counts a connection that is being made.
#[derive(Debug)]
pub(super) struct Admission(Arc<NetworkState>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.lock().beginning -= 1;
    }
}

/// Counts the bytes of a connection, and reports its end when it is dropped.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) number: u64,
    began: Instant,
    traffic: Arc<Traffic>,
    state: Arc<NetworkState>,
}

impl Metered {
    fn check(&self) -> io::Result<()> {
        let limit = self.state.policy.borrow().get_limits().bytes;
        match limit {
            Some(limit) if self.state.totals.all() > limit => Err(io::Error::other(
                "all bytes that the policy allows are used up",
            )),
            _ => Ok(()),
        }
    }
}

impl Meter for Metered {
    fn received(&self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        self.traffic.received.fetch_add(bytes, Ordering::Relaxed);
        self.state
            .totals
            .received
            .fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    fn sent(&self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        self.traffic.sent.fetch_add(bytes, Ordering::Relaxed);
        self.state.totals.sent.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.state.ended(ConnectionEnd {
            number: self.number,
            sent: self.traffic.sent.load(Ordering::Relaxed),
            received: self.traffic.received.load(Ordering::Relaxed),
            duration: self.began.elapsed(),
        });
    }
}
