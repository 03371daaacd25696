use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::exit::ExitRecord;
use crate::{Cause, Output, Truncation};

/// An [`Output`] as JSON. An output that is not UTF-8 is lossy text, and its
/// bytes are in Base64 beside it.
#[derive(Serialize, Deserialize)]
struct OutputRecord<'a> {
    stdout: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    stderr: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    stdout_dropped_bytes: u64,
    /// How many bytes come before the dropped ones.
    stdout_dropped_at: Option<usize>,
    stderr_dropped_bytes: u64,
    stderr_dropped_at: Option<usize>,
    timed_out: bool,
    warnings: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    network_denials: Cow<'a, [String]>,
    #[serde(flatten)]
    exit: ExitRecord<'a>,
}

/// Returns bytes as text, and in Base64 if the text is lossy.
fn text(bytes: &[u8]) -> (Cow<'_, str>, Option<String>) {
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, Cow::Owned(_));
    (text, is_lossy.then(|| STANDARD.encode(bytes)))
}

fn bytes<E: Error>(text: Cow<'_, str>, base64: Option<String>) -> Result<Vec<u8>, E> {
    match base64 {
        Some(encoded) => STANDARD.decode(encoded).map_err(E::custom),
        None => Ok(text.into_owned().into_bytes()),
    }
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (stdout, stdout_base64) = text(&self.stdout);
        let (stderr, stderr_base64) = text(&self.stderr);
        let count = |cut: Option<Truncation>| cut.map_or(0, |cut| cut.bytes);
        let record = OutputRecord {
            stdout,
            stdout_base64,
            stderr,
            stderr_base64,
            stdout_dropped_bytes: count(self.stdout_truncation),
            stdout_dropped_at: self.stdout_truncation.map(|cut| cut.at),
            stderr_dropped_bytes: count(self.stderr_truncation),
            stderr_dropped_at: self.stderr_truncation.map(|cut| cut.at),
            timed_out: self.exit.is_some_and(|exit| exit.cause == Cause::Timeout),
            warnings: Cow::Borrowed(&self.warnings),
            network_denials: Cow::Borrowed(&self.network_denials),
            exit: self
                .exit
                .as_ref()
                .map_or_else(ExitRecord::default, ExitRecord::from),
        };
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = OutputRecord::deserialize(deserializer)?;
        let cut = |at: Option<usize>, bytes| at.map(|at| Truncation { at, bytes });
        Ok(Self {
            exit: record.exit.exit()?,
            stdout: bytes(record.stdout, record.stdout_base64)?,
            stderr: bytes(record.stderr, record.stderr_base64)?,
            stdout_truncation: cut(record.stdout_dropped_at, record.stdout_dropped_bytes),
            stderr_truncation: cut(record.stderr_dropped_at, record.stderr_dropped_bytes),
            warnings: record.warnings.into_owned(),
            network_denials: record.network_denials.into_owned(),
        })
    }
}
