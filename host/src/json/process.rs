use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{exit::ExitRecord, seconds::Seconds};
use crate::{KeptOutput, LeftProcess, ProcessId, ProcessInfo};

/// A [`ProcessInfo`] as JSON.
#[derive(Serialize, Deserialize)]
struct ProcessRecord<'a> {
    id: ProcessId,
    pid: u32,
    tag: Cow<'a, str>,
    /// `running` or `ended`.
    state: Cow<'a, str>,
    background: bool,
    age_seconds: Seconds,
    uid: u32,
    command: Cow<'a, [String]>,
    stdout: KeptOutput,
    stderr: KeptOutput,
    left: Cow<'a, [LeftProcess]>,
    left_more: bool,
    #[serde(flatten)]
    exit: ExitRecord<'a>,
}

impl Serialize for ProcessInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = ProcessRecord {
            id: self.id,
            pid: self.pid,
            tag: Cow::Borrowed(&self.tag),
            state: if self.exit.is_some() {
                "ended"
            } else {
                "running"
            }
            .into(),
            background: self.background,
            age_seconds: Seconds(self.age),
            uid: self.uid,
            command: Cow::Borrowed(&self.command),
            stdout: self.stdout,
            stderr: self.stderr,
            left: Cow::Borrowed(&self.left),
            left_more: self.left_more,
            exit: self
                .exit
                .as_ref()
                .map_or_else(ExitRecord::default, ExitRecord::from),
        };
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ProcessInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = ProcessRecord::deserialize(deserializer)?;
        Ok(Self {
            id: record.id,
            pid: record.pid,
            tag: record.tag.into_owned(),
            command: record.command.into_owned(),
            uid: record.uid,
            background: record.background,
            age: record.age_seconds.0,
            stdout: record.stdout,
            stderr: record.stderr,
            exit: record.exit.exit()?,
            left: record.left.into_owned(),
            left_more: record.left_more,
        })
    }
}
