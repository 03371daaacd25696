use alloc::{format, string::String, vec::Vec};

use vmcell_wire::{
    FailureKind,
    limits::MAX_SERVICE_NAME,
    service::{Alive, Probe, Ready, Restart, Spec, StopBy, is_valid_name},
};

use super::Refusal;
use crate::probe;

/// What of a spec is asked for again and again.
pub(super) struct Terms {
    pub(super) restart: Restart,
    pub(super) stop: StopBy,
    pub(super) needs: Vec<String>,
    /// How long it may take to become ready. None: there is no probe.
    pub(super) ready_ms: Option<u32>,
    /// So many failures are too many. None: there is no probe.
    pub(super) failures: Option<u32>,
}

/// More needs than this make no sense.
const MAX_NEEDS: usize = 64;

/// The kernel's `_NSIG`.
const LAST_SIGNAL: u8 = 64;

/// Attempts that come faster are refused: they would be all the guest does.
const SHORTEST_INTERVAL_MS: u32 = 10;

impl Terms {
    /// Reads a spec and checks that it makes sense. Whether its program can be
    /// executed is seen when it is.
    pub(super) fn check(bytes: &[u8]) -> Result<Self, Refusal> {
        let spec = decode(bytes)?;
        let program = spec.start.argv.iter().next();
        if program.is_none_or(|program| program.is_empty()) {
            return Err(Refusal::invalid("no program is named"));
        }
        let Restart {
            pause_ms,
            max_pause_ms,
            ..
        } = spec.restart;
        if max_pause_ms < pause_ms {
            let text = "the longest pause is shorter than the first one";
            return Err(Refusal::invalid(text));
        }
        if !(1..=LAST_SIGNAL).contains(&spec.stop.signal) {
            return Err(Refusal::invalid("there is no such stop signal"));
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

/// The spec that these bytes are.
pub(super) fn decode(bytes: &[u8]) -> Result<Spec<'_>, Refusal> {
    Spec::from_bytes(bytes).map_err(|_| Refusal::invalid("the spec cannot be read"))
}

pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    if is_valid_name(name) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "a name of a service is a letter or digit and up to {} more, or . _ -",
        MAX_SERVICE_NAME.saturating_sub(1)
    )))
}

fn needs(spec: &Spec<'_>) -> Result<Vec<String>, Refusal> {
    let mut needs = Vec::new();
    for need in spec.needs.iter() {
        if needs.len() >= MAX_NEEDS {
            let text = format!("a service needs {MAX_NEEDS} others at most");
            return Err(Refusal::new(FailureKind::Limit, text));
        }
        let name = need.to_str().unwrap_or_default();
        check_name(name)?;
        needs.push(String::from(name));
    }
    Ok(needs)
}

fn check_ready(ready: &Ready<'_>) -> Result<(), Refusal> {
    probe::check(&ready.probe).map_err(Refusal::invalid)?;
    check_times(ready.interval_ms, ready.attempt_ms)?;
    if ready.timeout_ms == 0 {
        return Err(Refusal::invalid("a service needs some time to get ready"));
    }
    Ok(())
}

fn check_alive(alive: &Alive<'_>) -> Result<(), Refusal> {
    if matches!(alive.probe, Probe::Log { .. }) {
        let text = "a line of the log does not tell whether a service lives";
        return Err(Refusal::invalid(text));
    }
    probe::check(&alive.probe).map_err(Refusal::invalid)?;
    check_times(alive.interval_ms, alive.attempt_ms)?;
    if alive.failures == 0 {
        let text = "it takes one failure at least to end a service";
        return Err(Refusal::invalid(text));
    }
    Ok(())
}

fn check_times(interval_ms: u32, attempt_ms: u32) -> Result<(), Refusal> {
    if interval_ms < SHORTEST_INTERVAL_MS {
        let text = format!("the interval of a probe is {SHORTEST_INTERVAL_MS} ms at least");
        return Err(Refusal::invalid(text));
    }
    if attempt_ms == 0 {
        return Err(Refusal::invalid("an attempt needs some time"));
    }
    Ok(())
}
