//! `vmcell vm list` and `status`, and VMs as text and as JSON.

use serde_json::{Value, json};
use vmcell::workspace::WorkspaceInfo;
use vmcell_cli::show::Table;

use super::{find, open};
use crate::{
    failure::print_json,
    kept_vm::describe_state,
    workspace::{date, print_properties},
};

pub(super) async fn list(json: bool) -> anyhow::Result<u8> {
    let list = open()?.list().await?;
    if json {
        let rows: Value = list.iter().map(as_json).collect();
        print_json(&json!({ "vms": rows }));
        return Ok(0);
    }
    let mut table = Table::new(["ID", "STATE", "ENVIRONMENT", "CREATED", "EXPIRES"]);
    for info in list {
        table.add([
            info.id.clone(),
            info.state.to_string(),
            info.environment.clone(),
            date(info.created),
            expires(&info),
        ]);
    }
    table.print_to_stdout()?;
    Ok(0)
}

pub(super) async fn status(id: &str, json: bool) -> anyhow::Result<u8> {
    let info = find(id).await?.info().await?;
    if json {
        print_json(&as_json(&info));
        return Ok(0);
    }
    print_properties(&[
        ("id", info.id.clone()),
        ("state", describe_state(&info)),
        ("environment", info.environment.clone()),
        ("vcpus", info.vcpus.to_string()),
        ("memory", format!("{} MiB", info.memory_mib)),
        ("network", info.network.name().to_owned()),
        ("created", date(info.created)),
        ("expires", expires(&info)),
    ])
}

fn expires(info: &WorkspaceInfo) -> String {
    info.expires.map_or("never".to_owned(), date)
}

pub(super) fn as_json(info: &WorkspaceInfo) -> Value {
    json!({
        "vm_id": info.id,
        "environment": info.environment,
        "state": info.state.as_str(),
        "stop_reason": info.stop_reason,
        "vcpu_count": info.vcpus,
        "mem_mib": info.memory_mib,
        "network_policy": info.network.name(),
        "created_at": date(info.created),
        "last_activity_at": date(info.last_activity),
        "expires_at": info.expires.map(date),
    })
}
