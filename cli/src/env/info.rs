//! Environments as text and as JSON.

use std::time::SystemTime;

use serde_json::{Value, json};
use vmcell_cli::{
    options::size::human_readable,
    show::{Table, name},
};
use vmcell_rootfs::catalog::{CatalogEntry, Pruned};
use vmcell_tree::{Date, printable_name};

use super::users::ImageUsers;
use crate::{failure::print_json, ps};

/// Shown for what there is not.
const NONE: &str = "-";

pub(super) fn as_json(entry: &CatalogEntry, users: &ImageUsers) -> Value {
    let image = entry.image.as_ref();
    let date = |time: Option<SystemTime>| time.map(|time| Date::of(time).rfc3339());
    let mut object = json!({
        "name": entry.name,
        "kind": entry.kind.name(),
        "source": entry.source,
        "digest": entry.digest,
        "path": null,
        "disk_bytes": image.map(|image| image.disk_bytes),
        "unpacked_bytes": image.map(|image| image.unpacked_bytes),
        "made": image.and_then(|image| date(image.made)),
        "last_used": image.and_then(|image| date(image.used)),
        "workspaces": image.map(|image| users.of(&image.path)).unwrap_or_default(),
        "defaults": entry.defaults,
    });
    if let Some(image) = image {
        name::insert(&mut object, "path", &image.path);
    }
    object
}

/// Prints an environment that was made: its name, or all of it as JSON.
pub(super) async fn print_new(entry: &CatalogEntry, json: bool) -> anyhow::Result<u8> {
    match json {
        true => print_json(&as_json(entry, &ImageUsers::find().await?)),
        false => println!("{}", entry.name),
    }
    Ok(0)
}

/// Returns a table with a row for each environment.
pub(super) fn table(entries: &[CatalogEntry], users: &ImageUsers) -> Table<7> {
    let mut table = Table::new([
        "NAME",
        "ON DISK",
        "UNPACKED",
        "AGE",
        "LAST USE",
        "WORKSPACES",
        "SOURCE",
    ]);
    for entry in entries {
        let image = entry.image.as_ref();
        let size = |bytes: Option<u64>| bytes.map_or(NONE.to_owned(), human_readable);
        table.add([
            entry.name.clone(),
            size(image.map(|image| image.disk_bytes)),
            size(image.map(|image| image.unpacked_bytes)),
            age(image.and_then(|image| image.made)),
            age(image.and_then(|image| image.used)),
            image
                .map_or(0, |image| users.of(&image.path).len())
                .to_string(),
            printable_name(entry.source.as_bytes()).into_owned(),
        ]);
    }
    table
}

/// Returns the properties of one environment, with their names.
pub(super) fn properties(entry: &CatalogEntry, users: &ImageUsers) -> Vec<(&'static str, String)> {
    let image = entry.image.as_ref();
    let date =
        |time: Option<SystemTime>| time.map_or(NONE.to_owned(), |time| Date::of(time).rfc3339());
    let text = |text: &str| printable_name(text.as_bytes()).into_owned();
    let defaults = &entry.defaults;
    let mut properties = vec![
        ("name", entry.name.clone()),
        ("kind", entry.kind.name().to_owned()),
        ("source", text(&entry.source)),
        ("digest", entry.digest.clone().unwrap_or(NONE.to_owned())),
    ];
    match image {
        None => properties.push(("image", "not built yet: the first run builds it".to_owned())),
        Some(image) => properties.extend([
            ("image", name::printable(&image.path)),
            ("on disk", human_readable(image.disk_bytes)),
            ("unpacked", human_readable(image.unpacked_bytes)),
            ("made", date(image.made)),
            ("last use", date(image.used)),
            ("workspaces", users.of(&image.path).join(" ")),
        ]),
    }
    let lists = [
        ("command", defaults.command_line(&[])),
        ("environment", defaults.env.clone()),
        ("ports", defaults.exposed_ports.clone()),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            properties.push((name, text(&list.join(" "))));
        }
    }
    for (name, value) in [
        ("user", &defaults.user),
        ("working directory", &defaults.working_dir),
    ] {
        if let Some(value) = value {
            properties.push((name, text(value)));
        }
    }
    for (key, value) in &defaults.labels {
        properties.push(("label", text(&format!("{key}={value}"))));
    }
    properties
}

pub(super) fn pruned_as_json(pruned: &Pruned) -> Value {
    let images = pruned.images.iter().map(|path| {
        let mut object = json!({});
        name::insert(&mut object, "path", path);
        object
    });
    json!({ "removed": images.collect::<Vec<_>>(), "bytes": pruned.bytes })
}

fn age(time: Option<SystemTime>) -> String {
    // A time in the future is a clock that was set back.
    time.map_or(NONE.to_owned(), |time| {
        ps::human_readable(time.elapsed().unwrap_or_default())
    })
}
