use serde::{Serialize, Serializer};

use super::seconds::Seconds;
use crate::{
    Exit, KeptOutput,
    port::PortMapping,
    service::{ServicePhase, ServiceStatus},
};

/// A [`ServiceStatus`] as JSON.
#[derive(Serialize)]
struct ServiceRecord<'a> {
    name: &'a str,
    phase: &'a str,
    /// The name of the reason if it has failed.
    trouble: Option<&'a str>,
    /// Why it is in this phase, for people.
    reason: Option<String>,
    since_seconds: Seconds,
    pid: Option<u32>,
    restarts: u32,
    last_exit: Option<&'a Exit>,
    log: KeptOutput,
    published: &'a [PortMapping],
}

impl Serialize for ServiceStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = ServiceRecord {
            name: &self.name,
            phase: self.phase.name(),
            trouble: match &self.phase {
                ServicePhase::Failed(reason) => Some(reason.name()),
                _ => None,
            },
            reason: self.phase.reason(),
            since_seconds: Seconds(self.since),
            pid: self.pid,
            restarts: self.restarts,
            last_exit: self.last_exit.as_ref(),
            log: self.log,
            published: &self.published,
        };
        record.serialize(serializer)
    }
}
