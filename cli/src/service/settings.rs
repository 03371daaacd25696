//! Settings of one service.

use std::time::Duration;

use clap::Args;
use vmcell::{
    Command,
    service::{Probe, Readiness, Restart, ServiceSpec},
};

use crate::command::parse_seconds;

/// The settings of one service.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServiceSettings {
    /// When the service is ready: tcp:PORT or unix:PATH accepts connections,
    /// http:PORT/PATH answers, file:PATH exists, a line of its log matches
    /// log:REGEX, or the shell command line after cmd: succeeds. Default: as
    /// soon as it runs.
    #[arg(long, value_name = "PROBE")]
    pub(super) ready: Option<Probe>,
    /// Seconds it may take to become ready. Default: 30.
    #[arg(long, visible_alias = "ready-timeout-seconds", value_name = "SECONDS", requires = "ready", value_parser = parse_seconds)]
    pub(super) ready_timeout: Option<Duration>,
    /// Milliseconds between two attempts of the probe. Default: 500.
    #[arg(long = "ready-interval-ms", value_name = "N", requires = "ready", value_parser = parse_milliseconds)]
    pub(super) ready_interval: Option<Duration>,
    /// Start it only when OTHER is ready.
    #[arg(long, value_name = "OTHER")]
    pub(super) needs: Vec<String>,
    /// When to restart it after it ends: never, on-failure or always. Default:
    /// never.
    #[arg(long, value_name = "WHEN", value_parser = parse_restart)]
    pub(super) restart: Option<Restart>,
}

impl ServiceSettings {
    /// Returns how long the service may take to become ready.
    pub(crate) fn ready_timeout(&self) -> Duration {
        self.ready_timeout.unwrap_or(Readiness::DEFAULT_TIMEOUT)
    }

    pub(crate) fn into_spec(self, command: Command) -> ServiceSpec {
        let mut spec = ServiceSpec::new(command);
        if let Some(probe) = self.ready {
            let mut ready = Readiness::new(probe);
            if let Some(timeout) = self.ready_timeout {
                ready = ready.timeout(timeout);
            }
            if let Some(interval) = self.ready_interval {
                ready = ready.interval(interval);
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

fn parse_milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(milliseconds @ 1..) => Ok(Duration::from_millis(milliseconds)),
        _ => Err("expected whole milliseconds, 1 or more".to_owned()),
    }
}

pub(super) fn parse_restart(text: &str) -> Result<Restart, String> {
    match text {
        "never" => Ok(Restart::never()),
        "on-failure" => Ok(Restart::on_failure()),
        "always" => Ok(Restart::always()),
        _ => Err("expected never, on-failure or always".to_owned()),
    }
}
