//! `vmcell service ls`: lists services.

use serde_json::json;

use super::status;
use crate::{failure::print_json, target::Target};

pub(crate) async fn list(target: &Target, json: bool) -> anyhow::Result<u8> {
    let services = target.vm.services().list().await?;
    if json {
        let mut object = target.as_json();
        object["services"] = json!(services);
        print_json(&object);
    } else {
        status::table(&services).print_to_stdout()?;
    }
    Ok(0)
}
