//! `vmcell template prune`: removes templates that nobody uses.

use std::time::Duration;

use serde_json::json;
use vmcell::Template;

use super::{arguments::PruneArguments, info};
use crate::failure::print_json;

const SECONDS_PER_DAY: u64 = 24 * 3600;

pub(super) async fn prune(arguments: &PruneArguments) -> anyhow::Result<u8> {
    let unused = Duration::from_secs(u64::from(arguments.unused_days) * SECONDS_PER_DAY);
    let removed = Template::prune(unused).await?;
    if arguments.json {
        print_json(&json!({ "removed": info::list_as_json(&removed) }));
    } else if !removed.is_empty() {
        info::table(&removed).print_to_stdout()?;
    }
    Ok(0)
}
