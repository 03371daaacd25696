use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::seconds::Seconds;
use crate::{Cause, Exit, Signal};

/// How a command ended. All is null while it runs.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct ExitRecord<'a> {
    cause: Option<Cow<'a, str>>,
    exit_code: Option<u8>,
    signal: Option<Signal>,
    usage: Option<UsageRecord>,
    stdout_bytes: Option<u64>,
    stderr_bytes: Option<u64>,
    oom_kills: Option<u32>,
    outputs_cut: Option<bool>,
    tree_ended: Option<bool>,
}

/// The resources that a command used.
#[derive(Serialize, Deserialize)]
struct UsageRecord {
    wall_seconds: Seconds,
    user_seconds: Seconds,
    system_seconds: Seconds,
    peak_memory_bytes: u64,
}

impl From<&Exit> for ExitRecord<'_> {
    fn from(exit: &Exit) -> Self {
        Self {
            cause: Some(exit.cause.name().into()),
            exit_code: exit.code(),
            signal: match exit.cause {
                Cause::Signal(signal) => Some(signal),
                _ => None,
            },
            usage: Some(UsageRecord {
                wall_seconds: Seconds(exit.wall_time),
                user_seconds: Seconds(exit.user_time),
                system_seconds: Seconds(exit.system_time),
                peak_memory_bytes: exit.peak_memory,
            }),
            stdout_bytes: Some(exit.stdout_bytes),
            stderr_bytes: Some(exit.stderr_bytes),
            oom_kills: Some(exit.oom_kills),
            outputs_cut: Some(exit.outputs_cut),
            tree_ended: exit.tree_ended,
        }
    }
}

impl ExitRecord<'_> {
    /// Returns the exit; `None` while the command runs.
    pub(super) fn exit<E: Error>(self) -> Result<Option<Exit>, E> {
        let Some(name) = self.cause else {
            return Ok(None);
        };
        let cause = match (&*name, self.exit_code, self.signal) {
            ("code", Some(code), _) => Cause::Code(code),
            ("signal", _, Some(signal)) => Cause::Signal(signal),
            ("timeout", _, _) => Cause::Timeout,
            ("output-limit", _, _) => Cause::OutputLimit,
            ("out-of-memory", _, _) => Cause::OutOfMemory,
            ("killed", _, _) => Cause::Killed,
            _ => return Err(E::custom("the cause of the exit is unknown")),
        };
        let usage = self.usage.ok_or_else(|| E::missing_field("usage"))?;
        Ok(Some(Exit {
            cause,
            user_time: usage.user_seconds.0,
            system_time: usage.system_seconds.0,
            wall_time: usage.wall_seconds.0,
            peak_memory: usage.peak_memory_bytes,
            stdout_bytes: self.stdout_bytes.unwrap_or(0),
            stderr_bytes: self.stderr_bytes.unwrap_or(0),
            outputs_cut: self.outputs_cut.unwrap_or(false),
            oom_kills: self.oom_kills.unwrap_or(0),
            tree_ended: self.tree_ended,
        }))
    }
}

impl Serialize for Exit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ExitRecord::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Exit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let exit = ExitRecord::deserialize(deserializer)?.exit()?;
        exit.ok_or_else(|| D::Error::missing_field("cause"))
    }
}
