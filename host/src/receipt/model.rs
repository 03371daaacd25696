use serde::{Deserialize, Serialize};

/// What ran, on what, with what, and how it ended. Values of secrets are in none of it.
///
/// Digests are SHA-256, in hexadecimal. Those of outputs are of what the caller got: with
/// secrets masked, and without what was over the budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The version of this format, [`Receipt::VERSION`].
    pub version: u32,
    /// Whether it ran.
    pub kind: ReceiptKind,
    /// The id of the call, as in its result and its audit events.
    pub audit_id: String,
    /// Who asked for it.
    pub caller: String,
    /// When it began, by RFC 3339.
    pub started: String,
    /// When it ended, by RFC 3339.
    pub ended: String,
    /// The id of the VM or of the workspace.
    pub sandbox_id: Option<String>,
    /// What it booted from.
    pub image: Option<ReceiptImage>,
    /// The digest of the guest's kernel.
    pub kernel: Option<String>,
    /// The digest of the agent.
    pub agent: Option<String>,
    /// The digest of the policy.
    pub policy: String,
    /// The arguments of the command.
    pub command: Vec<String>,
    /// The files that were written before it ran.
    pub inputs: Vec<ContentDigest>,
    /// Its standard input.
    pub stdin: Option<OutputDigest>,
    /// Its standard output.
    pub stdout: Option<OutputDigest>,
    /// Its standard error.
    pub stderr: Option<OutputDigest>,
    /// The files that were read afterwards.
    pub outputs: Vec<ContentDigest>,
    /// The names of the network grants that it had.
    pub network_grants: Vec<String>,
    /// The secrets that it had, by name.
    pub secrets: Vec<SecretUse>,
    /// What its programs wanted to reach, the last ones.
    pub connections: Vec<ReceiptConnection>,
    /// How the command ended; `None` if it did not run.
    pub exit: Option<ReceiptExit>,
    /// Which of the failures it was.
    pub failure: Option<String>,
    /// What was to become of the sandbox.
    pub retention: Option<String>,
    /// How long what is kept may be kept.
    pub ttl_seconds: Option<u64>,
    /// What was decided about the request.
    pub decisions: Vec<DecisionRecord>,
}

/// Whether a request ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReceiptKind {
    /// It was started.
    Run,
    /// It was refused, and nothing was started.
    Denied,
}

/// What a VM booted from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceiptImage {
    /// What the policy calls it.
    pub name: String,
    /// The digest of the data of its file and of where that is, as in
    /// [snapshots](crate::snapshot). It is not that of all bytes: an image may have gigabytes
    /// of holes.
    pub sparse_sha256: String,
}

/// A file that went into a guest or came out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContentDigest {
    /// Its path in the guest.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The digest of its content.
    pub sha256: String,
}

/// A stream of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputDigest {
    /// How many bytes the digest is of.
    pub bytes: u64,
    /// The digest.
    pub sha256: String,
    /// How many bytes were over the budget.
    pub dropped_bytes: u64,
}

/// A secret that a command had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SecretUse {
    /// The environment variable.
    pub variable: String,
    /// The name of the secret.
    pub name: String,
}

/// Something that a program of the guest wanted of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceiptConnection {
    /// When, by RFC 3339.
    pub time: String,
    /// The host and the port, or a name that was looked up.
    pub wanted: String,
    /// What was decided, and why.
    pub decision: String,
    /// How many bytes were sent; `None` if there was no connection, or it was still open.
    pub sent: Option<u64>,
    /// How many bytes were received.
    pub received: Option<u64>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceiptExit {
    /// The name of the cause, as in the result.
    pub cause: String,
    /// The exit code, if it exited.
    pub code: Option<u8>,
    /// How long it ran, in milliseconds.
    pub wall_ms: u64,
    /// The processor time that it used, in milliseconds.
    pub processor_ms: u64,
    /// Its peak resident memory.
    pub peak_memory_bytes: u64,
}

/// A decision about a part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DecisionRecord {
    /// What it is about: `request`, `caller`, `image`, `limits`, `network`, `secret` or
    /// `retention`.
    pub subject: String,
    /// Which one, such as the name of the image.
    pub name: String,
    /// Whether it was allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
}

impl Receipt {
    /// The version of the format that is written.
    pub const VERSION: u32 = 1;
}
