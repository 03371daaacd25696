//! `vmcell service status`, `stop`, `restart` and `rm`.

use serde_json::json;
use vmcell::{
    Error, Vm,
    service::{Service, ServiceError, ServiceStatus},
};

use super::{arguments::NamedService, status};
use crate::{failure::print_json, target::Target};

/// What to do with a service.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    Stop,
    Restart,
}

pub(crate) async fn status(
    target: &Target,
    service: &NamedService,
    json: bool,
) -> anyhow::Result<u8> {
    let service = find(&target.vm, &service.name).await?.status().await?;
    if json {
        print_status(target, &service);
    } else {
        status::table([&service]).print_to_stdout()?;
    }
    Ok(0)
}

pub(crate) async fn apply(
    target: &Target,
    service: &NamedService,
    action: Action,
    json: bool,
) -> anyhow::Result<u8> {
    let service = find(&target.vm, &service.name).await?;
    let status = match action {
        Action::Stop => service.stop().await?,
        Action::Restart => {
            service.restart().await?;
            service.ready().await?
        }
    };
    if json {
        print_status(target, &status);
    }
    Ok(0)
}

pub(super) async fn remove(
    target: &Target,
    service: &NamedService,
    json: bool,
) -> anyhow::Result<u8> {
    let service = find(&target.vm, &service.name).await?;
    let last = service.status().await?;
    service.remove().await?;
    if json {
        print_status(target, &last);
    }
    Ok(0)
}

/// Prints the status of a service as JSON.
pub(super) fn print_status(target: &Target, service: &ServiceStatus) {
    let mut object = target.as_json();
    object["service"] = json!(service);
    print_json(&object);
}

/// Returns the service with this name.
pub(super) async fn find(vm: &Vm, name: &str) -> Result<Service, Error> {
    let service = vm.services().get(name).await?;
    let name = name.to_owned();
    service.ok_or_else(|| ServiceError::Unknown { name }.into())
}
