//! `vmcell service start`: starts a service.

use std::io::{self, Write};

use vmcell::{Command, service::ServiceSpec};

use super::{arguments::NewService, control};
use crate::{port, target::Target};

pub(crate) async fn start(target: &Target, service: NewService, json: bool) -> anyhow::Result<u8> {
    let command = Command::from_argv(service.command);
    let command = service.start.load()?.apply_to(command);
    let command = target.prepare(service.limits.apply_to(command)).await?;
    let command = target.grant(command, &service.secrets).await?;
    let spec = service.settings.into_spec(command);
    let spec = service.publish.into_iter().fold(spec, ServiceSpec::publish);
    let services = target.vm.services();
    let started = match service.if_same {
        true => services.ensure_started(&service.name, spec).await?,
        false => services.start(&service.name, spec).await?,
    };
    let status = match service.no_wait {
        true => started.status().await?,
        false => started.ready().await?,
    };
    if json {
        control::print_status(target, &status);
        return Ok(0);
    }
    for port in &status.published {
        writeln!(io::stdout(), "{}", port::describe_mapping(*port))?;
    }
    Ok(0)
}
