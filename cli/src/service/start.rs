//! `vmcell service start`: starts a service.

use vmcell::{Command, Vm};

use super::{arguments::StartArguments, control};

pub(super) async fn start(arguments: StartArguments) -> anyhow::Result<u8> {
    let command = Command::from_argv(arguments.command);
    let command = arguments.start.load()?.apply_to(command);
    let spec = arguments
        .settings
        .into_spec(arguments.limits.apply_to(command));
    let vm = Vm::attach(&arguments.id).await?;
    let service = match arguments.if_same {
        true => vm.services().ensure_started(&arguments.name, spec).await?,
        false => vm.services().start(&arguments.name, spec).await?,
    };
    let status = match arguments.no_wait {
        true => service.status().await?,
        false => service.ready().await?,
    };
    if arguments.json {
        control::print_status(&vm, &status);
    }
    Ok(0)
}
