use super::names::shown;
use crate::receipt::DecisionRecord;

/// The decisions about one call.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    pub(super) audit_id: String,
    pub(super) caller: String,
    pub(super) decisions: Vec<DecisionRecord>,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Request,
    Caller,
    Image,
    Limits,
    Network,
    Secret,
    Retention,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Caller => "caller",
            Self::Image => "image",
            Self::Limits => "limits",
            Self::Network => "network",
            Self::Secret => "secret",
            Self::Retention => "retention",
        }
    }
}

impl Audit {
    /// The most decisions of a call that are recorded. A request can name more hosts.
    const MAX_DECISIONS: usize = 256;

    pub(super) fn new(audit_id: String, caller: &str) -> Self {
        Self {
            audit_id,
            caller: caller.to_owned(),
            decisions: Vec::new(),
        }
    }

    pub(super) fn allow(&mut self, subject: Subject, name: &str, reason: &str) {
        self.decide(subject, name, true, reason);
    }

    pub(super) fn deny(&mut self, subject: Subject, name: &str, reason: &str) {
        self.decide(subject, name, false, reason);
    }

    fn decide(&mut self, subject: Subject, name: &str, allowed: bool, reason: &str) {
        let name = shown(name);
        let name = name.trim_matches('"');
        // The names of these fields do not change: see the module.
        tracing::info!(
            target: "vmcell::audit",
            audit_id = self.audit_id,
            caller = self.caller,
            subject = subject.name(),
            name,
            decision = if allowed { "allowed" } else { "denied" },
            reason,
        );
        // The last one is why nothing was started.
        if self.decisions.len() < Self::MAX_DECISIONS || !allowed {
            self.decisions.push(DecisionRecord {
                subject: subject.name().to_owned(),
                name: name.to_owned(),
                allowed,
                reason: reason.to_owned(),
            });
        }
    }
}
