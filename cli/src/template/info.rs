//! Templates as text and as JSON.

use std::time::SystemTime;

use serde_json::{Value, json};
use vmcell::template::TemplateInfo;
use vmcell_cli::{
    options::size,
    show::{Table, name},
};
use vmcell_tree::Date;

use crate::ps;

/// Shown for a template without an image.
const UNKNOWN: &str = "-";

pub(super) fn as_json(info: &TemplateInfo) -> Value {
    let mut object = json!({
        "name": info.name,
        "image": null,
        "vcpus": info.vcpus,
        "memory_mib": info.memory_mib,
        "bytes": info.bytes,
        "created": Date::of(info.created).rfc3339(),
        "last_used": Date::of(info.used).rfc3339(),
    });
    name::insert(&mut object, "path", &info.path);
    if let Some(image) = &info.image {
        name::insert(&mut object, "image", image);
    }
    object
}

/// Returns the templates as a list.
pub(super) fn list_as_json(infos: &[TemplateInfo]) -> Value {
    infos.iter().map(as_json).collect()
}

/// Returns a table with a row for each template.
pub(super) fn table(infos: &[TemplateInfo]) -> Table<7> {
    let mut table = Table::new([
        "NAME", "VCPUS", "MEMORY", "SIZE", "AGE", "LAST USE", "IMAGE",
    ]);
    for info in infos {
        table.add([
            info.name.clone(),
            info.vcpus.to_string(),
            memory(info),
            size::human_readable(info.bytes),
            age(info.created),
            age(info.used),
            image(info),
        ]);
    }
    table
}

/// Returns the properties of one template, with their names.
pub(super) fn properties(info: &TemplateInfo) -> [(&'static str, String); 8] {
    [
        ("name", info.name.clone()),
        ("path", name::printable(&info.path)),
        ("image", image(info)),
        ("vcpus", info.vcpus.to_string()),
        ("memory", memory(info)),
        ("size", size::human_readable(info.bytes)),
        ("created", Date::of(info.created).rfc3339()),
        ("last use", Date::of(info.used).rfc3339()),
    ]
}

fn memory(info: &TemplateInfo) -> String {
    format!("{} MiB", info.memory_mib)
}

fn image(info: &TemplateInfo) -> String {
    let image = info.image.as_ref();
    image.map_or(UNKNOWN.to_owned(), name::printable)
}

fn age(time: SystemTime) -> String {
    // A time in the future is a clock that was set back.
    ps::human_readable(time.elapsed().unwrap_or_default())
}
