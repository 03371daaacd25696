use alloc::{format, string::String, vec::Vec};

use vmcell_wire::{
    FailureKind,
    limits::MAX_SERVICE_NAME,
    service::{LivenessProbe, Probe, ReadinessProbe, Restart, Spec, StopPolicy, is_valid_name},
};

use super::ServiceError;
use crate::probe;

/// The decoded settings of a spec that are needed repeatedly.
pub(super) struct Settings {
    pub(super) restart: Restart,
    pub(super) stop: StopPolicy,
    pub(super) needs: Vec<String>,
    /// How long it may take to become ready; `None`: no readiness probe.
    pub(super) ready_ms: Option<u32>,
    /// The number of failures in a row that ends it; `None`: no liveness probe.
    pub(super) failures: Option<u32>,
}

/// The maximum number of needs.
const MAX_NEEDS: usize = 64;

/// The kernel's `_NSIG`.
const LAST_SIGNAL: u8 = 64;

/// The minimum interval of attempts: faster ones would use up the guest's CPU.
const MIN_INTERVAL_MS: u32 = 10;

impl Settings {
    /// Decodes and checks a spec. Whether its program can be executed is only
    /// known at its start.
    pub(super) fn check(bytes: &[u8]) -> Result<Self, ServiceError> {
        let spec = decode(bytes)?;
        let program = spec.start.argv.iter().next();
        if program.is_none_or(|program| program.is_empty()) {
            return Err(ServiceError::invalid("no program is named"));
        }
        let Restart {
            pause_ms,
            max_pause_ms,
            ..
        } = spec.restart;
        if max_pause_ms < pause_ms {
            let text = "the longest pause is shorter than the first one";
            return Err(ServiceError::invalid(text));
        }
        if !(1..=LAST_SIGNAL).contains(&spec.stop.signal) {
            return Err(ServiceError::invalid("there is no such stop signal"));
        }
        spec.ready.as_ref().map_or(Ok(()), check_ready)?;
        spec.alive.as_ref().map_or(Ok(()), check_alive)?;
        Ok(Self {
            restart: spec.restart,
            stop: spec.stop,
            needs: needs(&spec)?,
            ready_ms: spec.ready.map(|ready| ready.timeout_ms),
            failures: spec.alive.map(|alive| alive.failures),
        })
    }
}

/// Decodes a spec.
pub(super) fn decode(bytes: &[u8]) -> Result<Spec<'_>, ServiceError> {
    Spec::from_bytes(bytes).map_err(|_| ServiceError::invalid("the spec cannot be read"))
}

pub(super) fn check_name(name: &str) -> Result<(), ServiceError> {
    if is_valid_name(name) {
        return Ok(());
    }
    Err(ServiceError::invalid(format!(
        "the name of a service must be a letter or digit and up to {} more, or . _ -",
        MAX_SERVICE_NAME.saturating_sub(1)
    )))
}

fn needs(spec: &Spec<'_>) -> Result<Vec<String>, ServiceError> {
    let mut needs = Vec::new();
    for need in spec.needs.iter() {
        if needs.len() >= MAX_NEEDS {
            let text = format!("a service may need at most {MAX_NEEDS} others");
            return Err(ServiceError::new(FailureKind::Limit, text));
        }
        let name = need.to_str().unwrap_or_default();
        check_name(name)?;
        needs.push(String::from(name));
    }
    Ok(needs)
}

fn check_ready(ready: &ReadinessProbe<'_>) -> Result<(), ServiceError> {
    probe::check(&ready.probe).map_err(ServiceError::invalid)?;
    check_times(ready.interval_ms, ready.attempt_ms)?;
    if ready.timeout_ms == 0 {
        return Err(ServiceError::invalid("the time to get ready must not be 0"));
    }
    Ok(())
}

fn check_alive(alive: &LivenessProbe<'_>) -> Result<(), ServiceError> {
    if matches!(alive.probe, Probe::Log { .. }) {
        let text = "a liveness probe cannot use the log";
        return Err(ServiceError::invalid(text));
    }
    probe::check(&alive.probe).map_err(ServiceError::invalid)?;
    check_times(alive.interval_ms, alive.attempt_ms)?;
    if alive.failures == 0 {
        let text = "a liveness probe must allow at least one failure";
        return Err(ServiceError::invalid(text));
    }
    Ok(())
}

fn check_times(interval_ms: u32, attempt_ms: u32) -> Result<(), ServiceError> {
    if interval_ms < MIN_INTERVAL_MS {
        let text = format!("the interval of a probe must be at least {MIN_INTERVAL_MS} ms");
        return Err(ServiceError::invalid(text));
    }
    if attempt_ms == 0 {
        return Err(ServiceError::invalid("the attempt time must not be 0"));
    }
    Ok(())
}
