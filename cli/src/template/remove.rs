//! `vmcell template rm`: removes templates.

use serde_json::json;
use vmcell::Template;

use super::arguments::RemoveArguments;
use crate::failure::print_json;

pub(super) async fn remove(arguments: &RemoveArguments) -> anyhow::Result<u8> {
    let mut removed = Vec::new();
    let mut missing = Vec::new();
    for name in &arguments.names {
        match Template::remove(name).await? {
            true => removed.push(name),
            false => missing.push(name.as_str()),
        }
    }
    if !missing.is_empty() {
        return Err(no_such_template(&missing));
    }
    if arguments.json {
        print_json(&json!({ "removed": removed }));
    }
    Ok(0)
}

pub(super) fn no_such_template(names: &[&str]) -> anyhow::Error {
    let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    anyhow::anyhow!(
        "there is no template {}: `vmcell template ls` lists them",
        names.join(", ")
    )
}
