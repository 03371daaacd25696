//! `vmcell workspace list`: lists workspaces.

use serde_json::{Value, json};

use super::{info, open};
use crate::failure::{print_json, report};

pub(super) async fn list(json: bool) -> anyhow::Result<u8> {
    let workspaces = open()?;
    let list = workspaces.list().await?;
    for (id, error) in workspaces.unreadable().await? {
        let remedy = format!("`vmcell workspace delete {id}` deletes it");
        report(&format!("{id} is not listed: {error}; {remedy}"));
    }
    if json {
        let rows: Value = list.iter().map(info::summary_as_json).collect();
        print_json(&json!({ "workspaces": rows }));
    } else {
        info::table(&list).print_to_stdout()?;
    }
    Ok(0)
}
