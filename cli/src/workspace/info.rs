//! Workspaces as text and as JSON.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use vmcell::workspace::{WorkspaceInfo, WorkspaceSeed};
use vmcell_cli::{
    options::size::human_readable,
    show::{Table, name},
};
use vmcell_tree::Date;

use crate::kept_vm::describe_state;

/// Shown for what a workspace does not have.
const NONE: &str = "-";

/// Returns everything about a workspace.
pub(super) fn as_json(info: &WorkspaceInfo) -> Value {
    let mut object = summary_as_json(info);
    object["stop_reason"] = json!(info.stop_reason);
    object["vcpu_count"] = info.vcpus.into();
    object["mem_mib"] = info.memory_mib.into();
    object["disk_mib"] = info.disk_mib.into();
    object["network_policy"] = info.network.name().into();
    object["quotas"] = json!(info.quotas);
    object["workspace_seed"] = seed_as_json(&info.seed);
    object["secrets"] = json!(info.secrets);
    object["reset_count"] = info.reset_count.into();
    object["last_reset_at"] = json!(info.last_reset.map(date));
    object
}

/// Returns what `workspace list` prints about a workspace.
pub(super) fn summary_as_json(info: &WorkspaceInfo) -> Value {
    json!({
        "workspace_id": info.id,
        "name": info.name,
        "labels": info.labels,
        "environment": info.environment,
        "state": info.state.as_str(),
        "created_at": date(info.created),
        "last_activity_at": date(info.last_activity),
        "expires_at": info.expires.map(date),
        "idle_seconds": info.idle_time.map_or(0, |time| time.as_secs()),
        "command_count": info.command_count,
        "service_count": info.services.map(|services| services.total),
        "running_service_count": info.services.map(|services| services.running),
        "paused_automatically": info.is_paused_automatically,
        "newly_paused": info.is_newly_paused,
    })
}

fn seed_as_json(seed: &WorkspaceSeed) -> Value {
    let mut object = json!({
        "mode": seed_mode(seed),
        "path": null,
        "entries": seed.entries,
        "bytes": seed.bytes,
    });
    if let Some(path) = &seed.path {
        name::insert(&mut object, "path", path);
    }
    object
}

fn seed_mode(seed: &WorkspaceSeed) -> &'static str {
    match &seed.path {
        None => "empty",
        Some(_) if seed.is_archive => "archive",
        Some(_) => "directory",
    }
}

/// Returns a table with a row for each workspace.
pub(super) fn table(list: &[WorkspaceInfo]) -> Table<6> {
    let mut table = Table::new(["ID", "NAME", "STATE", "ENVIRONMENT", "ACTIVITY", "LABELS"]);
    for info in list {
        table.add([
            info.id.clone(),
            info.name.clone().unwrap_or(NONE.to_owned()),
            info.state.to_string(),
            info.environment.clone(),
            ago(info.last_activity),
            labels(info),
        ]);
    }
    table
}

/// Returns the properties of one workspace, with their names.
pub(super) fn properties(info: &WorkspaceInfo) -> Vec<(&'static str, String)> {
    let mut properties = vec![
        ("id", info.id.clone()),
        ("name", info.name.clone().unwrap_or(NONE.to_owned())),
        ("labels", labels(info)),
        ("state", describe_state(info)),
        ("environment", info.environment.clone()),
        ("vcpus", info.vcpus.to_string()),
        ("memory", format!("{} MiB", info.memory_mib)),
        ("network", info.network.name().to_owned()),
        ("seed", seed(&info.seed)),
        ("created", date(info.created)),
        ("activity", date(info.last_activity)),
        ("commands", info.command_count.to_string()),
        ("services", services(info)),
        ("resets", info.reset_count.to_string()),
    ];
    if !info.secrets.is_empty() {
        properties.push(("secrets", secrets(info)));
    }
    if let Some(mib) = info.disk_mib {
        properties.push(("disk", format!("{mib} MiB")));
    }
    if let Some(time) = info.idle_time {
        properties.push(("idle time", format!("{} s", time.as_secs())));
    }
    if let Some(time) = info.expires {
        properties.push(("expires", date(time)));
    }
    if let Some(time) = info.last_reset {
        properties.push(("last reset", date(time)));
    }
    properties
}

pub(crate) fn date(time: SystemTime) -> String {
    Date::of(time).rfc3339()
}

fn secrets(info: &WorkspaceInfo) -> String {
    let secrets = info.secrets.iter();
    let secrets: Vec<_> = secrets
        .map(|secret| format!("{} ({})", secret.name, secret.source))
        .collect();
    secrets.join(", ")
}

fn labels(info: &WorkspaceInfo) -> String {
    let labels = info.labels.iter();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match labels.is_empty() {
        true => NONE.to_owned(),
        false => labels.join(","),
    }
}

fn seed(seed: &WorkspaceSeed) -> String {
    match &seed.path {
        None => "empty".to_owned(),
        Some(path) => format!(
            "{} (entries: {}, size: {})",
            name::printable(path),
            seed.entries,
            human_readable(seed.bytes)
        ),
    }
}

fn services(info: &WorkspaceInfo) -> String {
    match info.services {
        None => "unknown: its VM does not answer".to_owned(),
        Some(services) => format!("{} ({} running)", services.total, services.running),
    }
}

fn ago(time: SystemTime) -> String {
    // A time in the future is a clock that was set back.
    describe_age(time.elapsed().unwrap_or_default())
}

fn describe_age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_their_largest_unit() {
        for (seconds, text) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (3_599, "59 minutes ago"),
            (7_200, "2 hours ago"),
            (86_400, "1 day ago"),
            (900_000, "10 days ago"),
        ] {
            assert_eq!(describe_age(Duration::from_secs(seconds)), text);
        }
    }
}
