use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use vmcell_tree::Date;

/// What a VM used in one second, or in the [resolution](super::MetricsTier::resolution) of
/// a coarser tier.
///
/// As JSON its times are `time` (RFC 3339) and `elapsed_seconds`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// When it was taken, by the clock of this machine. If that clock is set, times of
    /// later samples may be before those of earlier ones: use `elapsed` to order them.
    #[serde(with = "wall_clock")]
    pub time: SystemTime,
    /// How long after the start of the VM it was taken. No change of a clock affects it.
    /// The time that the machine itself is suspended does not count.
    #[serde(rename = "elapsed_seconds", with = "seconds")]
    pub elapsed: Duration,
    /// The processor time of the VMM, with the processors of the VM, in percent of one
    /// processor of this machine: up to 200 and a little more with 2 busy processors. The
    /// kernel counts it in steps of 10 ms.
    pub cpu_percent: f32,
    /// The largest `cpu_percent` of one second.
    pub cpu_percent_max: f32,
    /// The memory of the VMM that is in RAM (its resident set), with the memory that the
    /// guest has touched: in a coarser tier, the average.
    ///
    /// Memory that VMs of a template share counts for each of them. A fair share (Pss)
    /// would take the kernel milliseconds for each gigabyte, every second.
    pub memory_bytes: u64,
    /// The largest `memory_bytes`.
    pub memory_bytes_max: u64,
    /// What the file takes on the disk of this machine that the VM writes to, as du(1)
    /// counts: the topmost layer of its disk. `None` if the backend does not name it.
    pub disk_bytes: Option<u64>,
    /// How many processes the commands, services and terminals of the VM have with all
    /// their descendants: in a coarser tier, the largest number. Each thread of a process
    /// counts, as for [`pids_max`](crate::Command::pids_max).
    ///
    /// The guest counts them, so do not trust it further than the guest. `None` if it does
    /// not answer in half a second, for example because it is paused, if its agent is of an
    /// older version, or if its kernel has no `pids` controller.
    #[serde(default)]
    pub processes: Option<u32>,
    /// How many bytes the guest has sent to this machine since the sample before: output,
    /// files, connections. Those of the samples themselves do not count.
    pub received_bytes: u64,
    /// How many bytes the guest has got since the sample before.
    pub sent_bytes: u64,
}

/// A time as RFC 3339 for people, and else as milliseconds since 1970.
mod wall_clock {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        time: &SystemTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_str(&Date::of(*time).rfc3339()),
            false => serializer.serialize_u64(milliseconds_since_1970(*time)),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SystemTime, D::Error> {
        let time = match deserializer.is_human_readable() {
            true => Date::parse(&String::deserialize(deserializer)?),
            false => time_of(u64::deserialize(deserializer)?),
        };
        time.ok_or_else(|| D::Error::custom("not a time"))
    }
}

/// A duration as seconds for people, and else as milliseconds.
mod seconds {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_f64(time.as_secs_f64()),
            false => serializer.serialize_u64(milliseconds(*time)),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        match deserializer.is_human_readable() {
            true => Duration::try_from_secs_f64(f64::deserialize(deserializer)?)
                .map_err(D::Error::custom),
            false => u64::deserialize(deserializer).map(Duration::from_millis),
        }
    }
}

/// Returns the milliseconds since 1970, or 0 for a time before.
pub(super) fn milliseconds_since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    milliseconds(since.unwrap_or_default())
}

/// Returns the time that is so many milliseconds after 1970.
pub(super) fn time_of(milliseconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_after_json_and_after_postcard() {
        let sample = Sample {
            time: time_of(1_769_860_859_250).unwrap(),
            elapsed: Duration::from_millis(1500),
            cpu_percent: 12.5,
            cpu_percent_max: 100.0,
            memory_bytes: 1 << 30,
            memory_bytes_max: 2 << 30,
            disk_bytes: None,
            processes: Some(5),
            received_bytes: 7,
            sent_bytes: u64::MAX,
        };
        let json = serde_json::to_value(sample).unwrap();
        assert_eq!(json["time"], "2026-01-31T12:00:59.250000000Z");
        assert_eq!(json["elapsed_seconds"], 1.5);
        assert_eq!(serde_json::from_value::<Sample>(json).unwrap(), sample);
        let bytes = postcard::to_allocvec(&sample).unwrap();
        assert_eq!(postcard::from_bytes::<Sample>(&bytes).unwrap(), sample);
    }

    #[test]
    fn a_sample_that_was_saved_before_processes_were_counted_can_be_read() {
        let json = r#"{
            "time": "2026-01-31T12:00:59Z", "elapsed_seconds": 1.5,
            "cpu_percent": 12.5, "cpu_percent_max": 12.5,
            "memory_bytes": 4096, "memory_bytes_max": 4096,
            "disk_bytes": 0, "received_bytes": 1, "sent_bytes": 2
        }"#;
        let sample: Sample = serde_json::from_str(json).unwrap();
        assert_eq!((sample.processes, sample.sent_bytes), (None, 2));
    }
}
