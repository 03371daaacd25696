//! `vmcell vm create`: creates a VM that is not started.

use std::{
    io::{self, Write},
    time::Duration,
};

use vmcell::workspace::NewWorkspace;

use super::{arguments::CreateArguments, info, open};
use crate::{environment, runtime::block_on};

pub(super) fn create(arguments: CreateArguments, json: bool) -> anyhow::Result<u8> {
    let id_only = arguments.id_only;
    let new = new_vm(arguments)?;
    block_on(async move {
        let vm = open()?.create_stopped(new).await?;
        match id_only {
            true => writeln!(io::stdout(), "{}", vm.id())?,
            false => info::print(&vm.info().await?, json)?,
        }
        Ok(0)
    })
}

/// Builds the image of the environment, if it does not exist.
fn new_vm(arguments: CreateArguments) -> anyhow::Result<NewWorkspace> {
    let variables = arguments.network.variables();
    let network = arguments.network.policy(false)?;
    let image = environment::image(&arguments.environment)?;
    let mut new = NewWorkspace::new(image)
        .environment(arguments.environment.to_string_lossy())
        .vcpus(arguments.vcpu_count)
        .memory_mib(arguments.mem_mib)
        .lifetime(Duration::from_secs(arguments.ttl_seconds));
    if let Some(id) = arguments.id {
        new = new.id(id);
    }
    for (name, value) in variables {
        new = new.env(*name, *value);
    }
    if let Some(policy) = network {
        new = new.network(policy);
    }
    Ok(new)
}
