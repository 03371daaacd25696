//! The service options of `vmcell run`.

use std::{str::FromStr, time::Duration};

use clap::{ArgMatches, Args, Error, FromArgMatches, error::ErrorKind};
use vmcell::service::{Probe, Restart};

use super::{
    for_service::ForService,
    plan::{AlreadySet, PlannedService, Positioned, ServicePlan},
    settings::parse_restart,
};
use crate::command::parse_seconds;

/// The help heading of the options for services and ports.
pub(crate) const HELP_HEADING: &str = "Services and ports";

#[derive(Debug, Args)]
struct Flags {
    /// Run a service next to the command: a name and a shell command line. It
    /// has the command's user, working directory and environment. The command
    /// starts when all services are ready; they are stopped when it has ended.
    #[arg(
        long,
        value_name = "NAME=LINE",
        value_parser = parse_service,
        help_heading = HELP_HEADING
    )]
    service: Vec<(String, String)>,
    /// When a service is ready: tcp:PORT or unix:PATH accepts connections,
    /// http:PORT/PATH answers, file:PATH exists, a line of its log matches
    /// log:REGEX, or the shell command line after cmd: succeeds. Default: as
    /// soon as it runs. Without NAME, applies to the preceding --service, like
    /// the next three options.
    #[arg(
        long,
        value_name = "[NAME=]PROBE",
        value_parser = parse_ready,
        help_heading = HELP_HEADING
    )]
    ready: Vec<ForService<Probe>>,
    /// Seconds a service may take to become ready. Default: 30.
    #[arg(
        long,
        value_name = "[NAME=]SECONDS",
        value_parser = parse_ready_timeout,
        help_heading = HELP_HEADING
    )]
    ready_timeout: Vec<ForService<Duration>>,
    /// Start a service only when OTHER is ready.
    #[arg(
        long,
        value_name = "[NAME=]OTHER",
        value_parser = parse_needs,
        help_heading = HELP_HEADING
    )]
    needs: Vec<ForService<String>>,
    /// When to restart a service that ends: never, on-failure or always.
    /// Default: never.
    #[arg(
        long,
        value_name = "[NAME=]WHEN",
        value_parser = parse_restart_of,
        help_heading = HELP_HEADING
    )]
    restart: Vec<ForService<Restart>>,
}

/// The requested services, in the order of the command line.
#[derive(Debug, Default)]
pub(crate) struct ServiceFlags(pub(crate) Vec<PlannedService>);

impl FromArgMatches for ServiceFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Flags {
            service,
            ready,
            ready_timeout,
            needs,
            restart,
        } = Flags::from_arg_matches(matches)?;
        let plan = || {
            let mut plan = ServicePlan::new(with_positions(matches, "service", service))?;
            let ready = with_positions(matches, "ready", ready);
            plan.add("--ready", ready, |settings, probe| {
                set_once(&mut settings.ready, probe)
            })?;
            let ready_timeout = with_positions(matches, "ready_timeout", ready_timeout);
            plan.add("--ready-timeout", ready_timeout, |settings, time| {
                set_once(&mut settings.ready_timeout, time)
            })?;
            let needs = with_positions(matches, "needs", needs);
            plan.add("--needs", needs, |settings, other| {
                settings.needs.push(other);
                Ok(())
            })?;
            let restart = with_positions(matches, "restart", restart);
            plan.add("--restart", restart, |settings, when| {
                set_once(&mut settings.restart, when)
            })?;
            plan.finish()
        };
        plan()
            .map(Self)
            .map_err(|message: String| Error::raw(ErrorKind::ValueValidation, message))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ServiceFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Flags::augment_args_for_update(command)
    }
}

/// Pairs the values of an option with their positions on the command line.
fn with_positions<T>(matches: &ArgMatches, option: &str, values: Vec<T>) -> Vec<Positioned<T>> {
    let positions = matches.indices_of(option).into_iter().flatten();
    positions.zip(values).collect()
}

fn set_once<T>(setting: &mut Option<T>, value: T) -> Result<(), AlreadySet> {
    match setting.replace(value) {
        None => Ok(()),
        Some(_) => Err(AlreadySet),
    }
}

fn parse_service(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, line)) if !name.is_empty() && !line.trim().is_empty() => {
            Ok((name.to_owned(), line.to_owned()))
        }
        _ => Err("expected NAME=LINE: a name and a shell command line".to_owned()),
    }
}

fn parse_ready(text: &str) -> Result<ForService<Probe>, String> {
    ForService::parse(text, Probe::from_str)
}

fn parse_ready_timeout(text: &str) -> Result<ForService<Duration>, String> {
    ForService::parse(text, parse_seconds)
}

fn parse_needs(text: &str) -> Result<ForService<String>, String> {
    ForService::parse(text, |other| match other {
        "" => Err("expected the name of another service".to_owned()),
        other => Ok(other.to_owned()),
    })
}

fn parse_restart_of(text: &str) -> Result<ForService<Restart>, String> {
    ForService::parse(text, parse_restart)
}
