//! `vmcell workspace list`: lists workspaces.

use serde_json::{Value, json};

use super::{info, open};
use crate::failure::print_json;

pub(super) async fn list(json: bool) -> anyhow::Result<u8> {
    let list = open()?.list().await?;
    if json {
        let rows: Value = list.iter().map(info::summary_as_json).collect();
        print_json(&json!({ "workspaces": rows }));
    } else {
        info::table(&list).print_to_stdout()?;
    }
    Ok(0)
}
