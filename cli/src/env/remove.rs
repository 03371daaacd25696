//! `vmcell env remove`: removes environments.

use serde_json::json;
use vmcell_rootfs::catalog::Catalog;

use super::{arguments::RemoveArguments, users::ImageUsers};
use crate::failure::print_json;

pub(super) async fn remove(arguments: RemoveArguments) -> anyhow::Result<u8> {
    let catalog = Catalog::user()?;
    let in_use = ImageUsers::find().await?.images();
    let mut bytes = 0;
    for name in &arguments.names {
        bytes += catalog.remove(name, &in_use)?.bytes;
        if !arguments.json {
            println!("{name}");
        }
    }
    if arguments.json {
        print_json(&json!({ "removed": arguments.names, "bytes": bytes }));
    }
    Ok(0)
}
