//! One call, from its id to its receipt.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::task::JoinHandle;
use vmcell_tree::Date;

use super::{
    Retention, ToolFailureKind, ToolOutputFile,
    audit::Audit,
    evidence::{self, Evidence},
    plan::Plan,
};
use crate::{
    error::Error,
    hex,
    network::{NetworkEvent, NetworkLog},
    process::{Exit, Output, Truncation},
    random::random_bytes,
    receipt::{Receipt, ReceiptConnection, ReceiptExit, ReceiptImage, ReceiptKind, SecretUse},
    redaction::SecretSet,
    secret::Secret,
};

/// A call that is being carried out.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) audit: Audit,
    pub(super) started: SystemTime,
}

/// How far a call has come.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) sandbox_id: Option<String>,
    pub(super) ending: Ending,
    pub(super) outputs: Vec<ToolOutputFile>,
    pub(super) connections: Vec<ReceiptConnection>,
    /// Until when the sandbox is kept, if it is.
    pub(super) cleanup: Result<Option<SystemTime>, Error>,
    pub(super) evidence: Option<JoinHandle<Evidence>>,
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// By itself, or killed by its limits.
    Ended(Output),
    /// It was ended by its timeout.
    TimedOut { output: Output, after: Duration },
    /// It could not be started.
    NotStarted(Error),
    /// The VM was not there, or was lost.
    Lost(Error),
}

impl Attempt {
    pub(super) fn ended_with(ending: Ending) -> Self {
        Self {
            sandbox_id: None,
            ending,
            outputs: Vec::new(),
            connections: Vec::new(),
            cleanup: Ok(None),
            evidence: None,
        }
    }

    /// Returns what the command printed, if it ran.
    pub(super) fn output(&self) -> Option<&Output> {
        match &self.ending {
            Ending::Ended(output) | Ending::TimedOut { output, .. } => Some(output),
            Ending::NotStarted(_) | Ending::Lost(_) => None,
        }
    }

    /// Returns which failure it is, if it is one.
    pub(super) fn failure(&self) -> Option<ToolFailureKind> {
        match (&self.ending, &self.cleanup) {
            (Ending::Lost(_), _) => Some(ToolFailureKind::Transport),
            (_, Err(_)) => Some(ToolFailureKind::Cleanup),
            (Ending::TimedOut { .. }, _) => Some(ToolFailureKind::TimedOut),
            (Ending::NotStarted(_), _) => Some(ToolFailureKind::GuestCommand),
            (Ending::Ended(output), _) => {
                (!output.success()).then_some(ToolFailureKind::GuestCommand)
            }
        }
    }
}

impl Ending {
    /// Returns how the command ended that was waited for.
    pub(super) fn of(result: Result<Output, Error>) -> Self {
        match result {
            Ok(output) => Self::Ended(output),
            Err(Error::ExecTimeout { after, partial }) => Self::TimedOut {
                output: *partial,
                after,
            },
            Err(Error::OutputLimit { partial, .. }) => Self::Ended(*partial),
            Err(error @ (Error::Exec(_) | Error::File(_))) => Self::NotStarted(error),
            Err(error) => Self::Lost(error),
        }
    }
}

impl Call {
    /// Begins a call.
    pub(super) fn new(caller: &str) -> Result<Self, Error> {
        let audit_id = format!("run_{}", hex::encode(&random_bytes::<12>()?));
        Ok(Self {
            audit: Audit::new(audit_id, caller),
            started: SystemTime::now(),
        })
    }

    pub(super) fn audit_id(&self) -> String {
        self.audit.audit_id.clone()
    }

    /// Returns the receipt of a call that was refused.
    pub(super) fn denied(&self, policy: &str, kind: ToolFailureKind) -> Receipt {
        Receipt {
            version: Receipt::VERSION,
            kind: ReceiptKind::Denied,
            audit_id: self.audit_id(),
            caller: self.audit.caller.clone(),
            started: Date::of(self.started).rfc3339(),
            ended: Date::of(SystemTime::now()).rfc3339(),
            sandbox_id: None,
            image: None,
            kernel: None,
            agent: None,
            policy: policy.to_owned(),
            command: Vec::new(),
            inputs: Vec::new(),
            stdin: None,
            stdout: None,
            stderr: None,
            outputs: Vec::new(),
            network_grants: Vec::new(),
            secrets: Vec::new(),
            connections: Vec::new(),
            exit: None,
            failure: Some(kind.name().to_owned()),
            retention: None,
            ttl_seconds: None,
            decisions: self.audit.decisions.clone(),
        }
    }

    /// Returns the receipt of a call that was carried out.
    pub(super) fn receipt(
        &self,
        policy: &str,
        plan: &Plan,
        attempt: &Attempt,
        evidence: Evidence,
        masks: &Masks,
    ) -> Receipt {
        let output = attempt.output();
        let dropped = |gap: Option<Truncation>| gap.map_or(0, |gap| gap.bytes);
        let outputs = attempt.outputs.iter().filter_map(|file| {
            let content = file.content.as_ref().ok()?;
            Some(evidence::content(file.path.clone(), content))
        });
        let secrets = plan.secrets.iter().map(|(variable, name)| SecretUse {
            variable: variable.clone(),
            name: name.clone(),
        });
        let image = evidence.image.map(|digest| ReceiptImage {
            name: plan.image_name.clone(),
            sparse_sha256: digest,
        });
        Receipt {
            kind: ReceiptKind::Run,
            sandbox_id: attempt.sandbox_id.clone(),
            image,
            kernel: evidence.kernel,
            agent: evidence.agent,
            command: plan.argv.iter().map(|text| masks.text(text)).collect(),
            inputs: evidence.inputs,
            stdin: evidence.stdin,
            stdout: output
                .map(|output| evidence::stream(&output.stdout, dropped(output.stdout_truncation))),
            stderr: output
                .map(|output| evidence::stream(&output.stderr, dropped(output.stderr_truncation))),
            outputs: outputs.collect(),
            network_grants: plan.network_grants.clone(),
            secrets: secrets.collect(),
            connections: attempt.connections.clone(),
            exit: output.and_then(|output| output.exit).map(exit),
            failure: attempt.failure().map(|kind| kind.name().to_owned()),
            retention: Some(plan.retention.name().to_owned()),
            ttl_seconds: match plan.retention {
                Retention::Destroy => None,
                _ => plan.ttl.map(|ttl| ttl.as_secs()),
            },
            ..self.denied(policy, ToolFailureKind::Transport)
        }
    }
}

fn exit(exit: Exit) -> ReceiptExit {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ReceiptExit {
        cause: exit.cause.name().to_owned(),
        code: exit.code(),
        wall_ms: milliseconds(exit.wall_time),
        processor_ms: milliseconds(exit.user_time.saturating_add(exit.system_time)),
        peak_memory_bytes: exit.peak_memory,
    }
}

/// Masks the secrets of a call.
#[derive(Clone)]
pub(super) struct Masks(Option<Arc<SecretSet>>);

impl Masks {
    pub(super) fn new(secrets: &[(String, Secret)]) -> Self {
        let values = secrets
            .iter()
            .map(|(_, secret)| secret.value().expose().as_bytes());
        let set = (!secrets.is_empty()).then(|| Arc::new(SecretSet::new(values, [])));
        Self(set)
    }

    /// Masks bytes. Returns whether there was a secret.
    pub(super) fn bytes(&self, bytes: &mut [u8]) -> bool {
        self.0.as_ref().is_some_and(|set| set.mask_whole(bytes))
    }

    /// Returns whether there is nothing to mask.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns a text with secrets masked.
    pub(super) fn text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        match self.bytes(&mut bytes) {
            true => String::from_utf8_lossy(&bytes).into_owned(),
            false => text.to_owned(),
        }
    }
}

/// Returns what programs wanted of the network, from its log.
pub(super) fn connections(mut log: NetworkLog, masks: &Masks) -> Vec<ReceiptConnection> {
    let mut connections = BTreeMap::new();
    for event in log.take_recent() {
        match event {
            NetworkEvent::Decided(decision) => {
                let connection = ReceiptConnection {
                    time: Date::of(decision.time).rfc3339(),
                    wanted: masks.text(&decision.wanted.to_string()),
                    decision: masks.text(&decision.verdict.to_string()),
                    sent: None,
                    received: None,
                };
                connections.insert(decision.number, connection);
            }
            NetworkEvent::Ended(end) => {
                if let Some(connection) = connections.get_mut(&end.number) {
                    connection.sent = Some(end.sent);
                    connection.received = Some(end.received);
                }
            }
        }
    }
    connections.into_values().collect()
}
