//! `vmcell template ls`: lists templates.

use serde_json::json;
use vmcell::Template;

use super::{arguments::ListArguments, info};
use crate::failure::print_json;

pub(super) async fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    let templates = Template::list().await?;
    match arguments.json {
        true => print_json(&json!({ "templates": info::list_as_json(&templates) })),
        false => info::table(&templates).print_to_stdout()?,
    }
    Ok(0)
}
