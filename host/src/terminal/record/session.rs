use std::time::SystemTime;

use serde::{Serialize, Serializer};

use super::super::{Prompt, Status, TerminalSize};
use crate::{Cause, Exit};

/// The contents of `session.json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Session {
    pub(crate) tag: String,
    /// The program that it was opened for, and its arguments.
    pub(crate) command: Vec<String>,
    /// The PID of that program in the guest.
    pub(crate) pid: u32,
    #[serde(serialize_with = "columns_and_rows")]
    pub(crate) size: TerminalSize,
    /// In Unix milliseconds, as all times in records.
    #[serde(rename = "started_ms", serialize_with = "time")]
    pub(crate) started: SystemTime,
    #[serde(rename = "ended_ms", serialize_with = "maybe_time")]
    pub(crate) ended: Option<SystemTime>,
    #[serde(serialize_with = "exit")]
    pub(crate) exit: Option<Exit>,
    #[serde(serialize_with = "status_name")]
    pub(crate) status: Status,
    #[serde(serialize_with = "prompt_name")]
    pub(crate) prompt: Prompt,
}

/// Returns the milliseconds since the Unix epoch.
pub(super) fn unix_milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

fn time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    unix_milliseconds(*time).serialize(serializer)
}

fn maybe_time<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(unix_milliseconds).serialize(serializer)
}

#[derive(Serialize)]
struct Size {
    columns: u16,
    rows: u16,
}

pub(super) fn columns_and_rows<S: Serializer>(
    size: &TerminalSize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let TerminalSize { columns, rows } = *size;
    Size { columns, rows }.serialize(serializer)
}

/// How the program ended, with the stable name of the cause.
#[derive(Serialize)]
struct ExitInfo {
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<u8>,
}

fn exit<S: Serializer>(exit: &Option<Exit>, serializer: S) -> Result<S::Ok, S::Error> {
    exit.map(|exit| ExitInfo::new(&exit)).serialize(serializer)
}

pub(super) fn exit_info<S: Serializer>(exit: &Exit, serializer: S) -> Result<S::Ok, S::Error> {
    ExitInfo::new(exit).serialize(serializer)
}

impl ExitInfo {
    fn new(exit: &Exit) -> Self {
        Self {
            cause: exit.cause.name(),
            code: exit.code(),
            signal: match exit.cause {
                Cause::Signal(signal) => Some(signal.number()),
                _ => None,
            },
        }
    }
}

pub(super) fn status_name<S: Serializer>(
    status: &Status,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    status.name().serialize(serializer)
}

pub(super) fn prompt_name<S: Serializer>(
    prompt: &Prompt,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    prompt.name().serialize(serializer)
}
