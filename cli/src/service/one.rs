//! `vmcell service status`, `stop`, `restart` and `rm`.

use serde_json::json;
use vmcell::{
    Vm,
    service::{Service, ServiceStatus},
};

use super::{arguments::OneArguments, status};
use crate::failure::print_json;

/// What to do with a service.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Stop,
    Restart,
}

pub(super) async fn status(arguments: &OneArguments) -> anyhow::Result<u8> {
    let (vm, service) = find(arguments).await?;
    let service = service.status().await?;
    if arguments.json {
        tell(&vm, &service);
    } else {
        status::table([&service]).show()?;
    }
    Ok(0)
}

pub(super) async fn change(arguments: &OneArguments, change: Change) -> anyhow::Result<u8> {
    let (vm, service) = find(arguments).await?;
    let now = match change {
        Change::Stop => service.stop().await?,
        Change::Restart => {
            service.restart().await?;
            service.ready().await?
        }
    };
    if arguments.json {
        tell(&vm, &now);
    }
    Ok(0)
}

pub(super) async fn remove(arguments: &OneArguments) -> anyhow::Result<u8> {
    let (vm, service) = find(arguments).await?;
    let last = service.status().await?;
    service.remove().await?;
    if arguments.json {
        tell(&vm, &last);
    }
    Ok(0)
}

/// Prints the status of a service as JSON.
pub(super) fn tell(vm: &Vm, service: &ServiceStatus) {
    print_json(&json!({ "sandbox_id": vm.id(), "service": status::as_json(service) }));
}

async fn find(arguments: &OneArguments) -> anyhow::Result<(Vm, Service)> {
    let vm = Vm::attach(&arguments.id).await?;
    let service = vm.services().get(&arguments.name).await?;
    Ok((vm, service))
}
