//! `vmcell service ls`: lists services.

use serde_json::json;
use vmcell::Vm;

use super::{arguments::ListArguments, status};
use crate::failure::print_json;

pub(super) async fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    let vm = Vm::attach(&arguments.id).await?;
    let services = vm.services().list().await?;
    if arguments.json {
        print_json(&json!({ "sandbox_id": vm.id(), "services": services }));
    } else {
        status::table(&services).print_to_stdout()?;
    }
    Ok(0)
}
