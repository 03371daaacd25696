//! `vmcell service status`, `stop`, `restart` and `rm`.

use serde_json::json;
use vmcell::{
    Error, Vm,
    service::{Service, ServiceError, ServiceStatus},
};

use super::{arguments::NamedServiceArguments, status};
use crate::failure::print_json;

/// What to do with a service.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Stop,
    Restart,
}

pub(super) async fn status(arguments: &NamedServiceArguments) -> anyhow::Result<u8> {
    let (vm, service) = attach(arguments).await?;
    let service = service.status().await?;
    if arguments.json {
        print_status(&vm, &service);
    } else {
        status::table([&service]).print_to_stdout()?;
    }
    Ok(0)
}

pub(super) async fn apply(arguments: &NamedServiceArguments, action: Action) -> anyhow::Result<u8> {
    let (vm, service) = attach(arguments).await?;
    let status = match action {
        Action::Stop => service.stop().await?,
        Action::Restart => {
            service.restart().await?;
            service.ready().await?
        }
    };
    if arguments.json {
        print_status(&vm, &status);
    }
    Ok(0)
}

pub(super) async fn remove(arguments: &NamedServiceArguments) -> anyhow::Result<u8> {
    let (vm, service) = attach(arguments).await?;
    let last = service.status().await?;
    service.remove().await?;
    if arguments.json {
        print_status(&vm, &last);
    }
    Ok(0)
}

/// Prints the status of a service as JSON.
pub(super) fn print_status(vm: &Vm, service: &ServiceStatus) {
    print_json(&json!({ "sandbox_id": vm.id(), "service": service }));
}

async fn attach(arguments: &NamedServiceArguments) -> Result<(Vm, Service), Error> {
    let vm = Vm::attach(&arguments.id).await?;
    let service = find(&vm, &arguments.name).await?;
    Ok((vm, service))
}

/// Returns the service with this name.
pub(super) async fn find(vm: &Vm, name: &str) -> Result<Service, Error> {
    let service = vm.services().get(name).await?;
    let name = name.to_owned();
    service.ok_or_else(|| ServiceError::Unknown { name }.into())
}
