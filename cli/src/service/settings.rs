//! How a service is looked after.

use std::time::Duration;

use clap::Args;
use vmcell::{
    Command,
    service::{Probe, Readiness, Restart, ServiceSpec},
};

use crate::command::parse_seconds;

/// What is said about one service.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Settings {
    /// When it is ready: as soon as tcp:PORT or unix:PATH takes connections,
    /// http:PORT/PATH answers, file:PATH is there, a line of its log matches
    /// log:REGEX, or the shell line behind `cmd:` succeeds. Without it, as soon
    /// as it runs.
    #[arg(long, value_name = "PROBE")]
    pub(super) ready: Option<Probe>,
    /// How long it may take to become ready. Without it, 30.
    #[arg(long, value_name = "SECONDS", requires = "ready", value_parser = parse_seconds)]
    pub(super) ready_timeout: Option<Duration>,
    /// Start it when this other service is ready.
    #[arg(long, value_name = "OTHER")]
    pub(super) needs: Vec<String>,
    /// Whether to start it again when it ends: never, on-failure or always.
    /// Without it, never.
    #[arg(long, value_name = "WHEN", value_parser = parse_restart)]
    pub(super) restart: Option<Restart>,
}

impl Settings {
    /// How long it may take to become ready.
    pub(crate) fn longest(&self) -> Duration {
        self.ready_timeout.unwrap_or(Readiness::DEFAULT_TIMEOUT)
    }

    pub(crate) fn into_spec(self, command: Command) -> ServiceSpec {
        let mut spec = ServiceSpec::new(command);
        if let Some(probe) = self.ready {
            let mut ready = Readiness::new(probe);
            if let Some(timeout) = self.ready_timeout {
                ready = ready.timeout(timeout);
            }
            spec = spec.ready(ready);
        }
        for other in self.needs {
            spec = spec.needs(other);
        }
        if let Some(restart) = self.restart {
            spec = spec.restart(restart);
        }
        spec
    }
}

pub(super) fn parse_restart(text: &str) -> Result<Restart, String> {
    match text {
        "never" => Ok(Restart::never()),
        "on-failure" => Ok(Restart::on_failure()),
        "always" => Ok(Restart::always()),
        _ => Err("choose never, on-failure or always".to_owned()),
    }
}
