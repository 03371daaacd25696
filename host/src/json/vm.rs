use std::{
    borrow::Cow,
    os::unix::{ffi::OsStrExt as _, process::ExitStatusExt as _},
    process::ExitStatus,
    time::SystemTime,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap as _};
use vmcell_tree::{Date, json::write_name};

use super::seconds::Seconds;
use crate::{
    AccelerationChoice, End, Health, LinkChoice, QuotaUsage, VmEnd, VmInfo, VmState,
    confinement::LayerStatus,
};

/// A [`VmEnd`] as JSON.
#[derive(Serialize, Deserialize)]
struct EndRecord<'a> {
    kind: Cow<'a, str>,
    reason: End,
    /// The exit code of the VMM.
    exit_code: Option<i32>,
    /// The signal that ended the VMM.
    signal: Option<i32>,
}

impl Serialize for VmEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = EndRecord {
            kind: self.kind().name().into(),
            reason: self.reason,
            exit_code: self.status.and_then(|status| status.code()),
            signal: self.status.and_then(|status| status.signal()),
        };
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for VmEnd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = EndRecord::deserialize(deserializer)?;
        // As wait(2) encodes them.
        let status = match (record.exit_code, record.signal) {
            (Some(code), _) => Some((code & 0xff) << 8),
            (None, Some(signal)) => Some(signal & 0x7f),
            (None, None) => None,
        };
        let status = status.map(ExitStatus::from_raw);
        Ok(Self {
            reason: record.reason,
            status,
        })
    }
}

impl Serialize for VmInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let details = self.details();
        let uptime = details.map(|details| SystemTime::now().duration_since(details.started));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("owner_pid", &self.owner_pid)?;
        map.serialize_entry("state", self.status.name())?;
        map.serialize_entry(
            "uptime_seconds",
            &uptime.map(|up| Seconds(up.unwrap_or_default())),
        )?;
        let started = details.map(|details| Date::of(details.started).rfc3339());
        map.serialize_entry("started", &started)?;
        map.serialize_entry("vcpus", &details.map(|details| details.vcpus))?;
        map.serialize_entry("memory_mib", &details.map(|details| details.memory_mib))?;
        match details {
            Some(details) => write_name(&mut map, "image", details.image.as_os_str().as_bytes())?,
            None => map.serialize_entry("image", &None::<&str>)?,
        }
        map.serialize_entry("keeps_disk", &details.map(|details| details.keeps_disk))?;
        map.end()
    }
}

/// A choice of the library and its reason.
#[derive(Serialize)]
struct ChoiceRecord<'a> {
    name: Cow<'a, str>,
    reason: &'a str,
}

impl Serialize for AccelerationChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = self.acceleration.to_string().into();
        let reason = self.reason;
        ChoiceRecord { name, reason }.serialize(serializer)
    }
}

impl Serialize for LinkChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = self.kind.name().into();
        let reason = &self.reason;
        ChoiceRecord { name, reason }.serialize(serializer)
    }
}

/// A [`QuotaUsage`] as JSON.
#[derive(Serialize)]
struct QuotaRecord {
    layer_limit: Option<u64>,
    layer_bytes: Option<u64>,
    layer_full: bool,
    cpu_seconds: Option<u64>,
    cpu_milli: Option<u32>,
    disk_rate: Option<u64>,
    link_rate: Option<u64>,
}

impl QuotaRecord {
    fn new(usage: QuotaUsage) -> Self {
        Self {
            layer_limit: usage.layer_limit,
            layer_bytes: usage.layer_bytes,
            layer_full: usage.is_layer_full,
            cpu_seconds: usage.quotas.cpu_seconds,
            cpu_milli: usage.quotas.cpu_milli,
            disk_rate: usage.quotas.disk_rate,
            link_rate: usage.quotas.link_rate,
        }
    }
}

/// The [`Health`] of a VM as JSON.
#[derive(Serialize)]
struct HealthRecord<'a> {
    healthy: bool,
    state: &'a str,
    end: Option<VmEnd>,
    round_trip_seconds: Option<Seconds>,
    backend: &'a str,
    rejected_backends: Option<Vec<ChoiceRecord<'a>>>,
    confinement: Option<&'a [LayerStatus]>,
    quotas: Option<QuotaRecord>,
    warnings: &'a [String],
    acceleration: Option<AccelerationChoice>,
    link: &'a LinkChoice,
    agent: &'a str,
}

impl Serialize for Health {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rejected = self.rejected_backends.as_ref().map(|rejected| {
            let rejected = rejected.iter().map(|rejected| ChoiceRecord {
                name: Cow::Borrowed(&*rejected.backend),
                reason: &rejected.reason,
            });
            rejected.collect()
        });
        let (state, end) = match self.state {
            VmState::Running => ("running", None),
            VmState::Paused => ("paused", None),
            VmState::Stopping => ("stopping", None),
            VmState::Killing(_) => ("killing", None),
            VmState::Ended(end) => ("ended", Some(end)),
        };
        let record = HealthRecord {
            healthy: self.is_healthy(),
            state,
            end,
            round_trip_seconds: self.round_trip.map(Seconds),
            backend: &self.backend,
            rejected_backends: rejected,
            confinement: self.confinement.as_deref(),
            quotas: self.quotas.map(QuotaRecord::new),
            warnings: &self.warnings,
            acceleration: self.acceleration,
            link: &self.link,
            agent: &self.agent,
        };
        record.serialize(serializer)
    }
}
