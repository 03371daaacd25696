//! `vmcell env list`: lists the environments.

use serde_json::{Value, json};
use vmcell_rootfs::catalog::Catalog;

use super::{arguments::ListArguments, info, users::ImageUsers};
use crate::failure::print_json;

pub(super) async fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    let entries = Catalog::user()?.list()?;
    let users = ImageUsers::find().await?;
    match arguments.json {
        true => {
            let entries: Value = entries.iter().map(|it| info::as_json(it, &users)).collect();
            print_json(&json!({ "environments": entries }));
        }
        false => info::table(&entries, &users).print_to_stdout()?,
    }
    Ok(0)
}
