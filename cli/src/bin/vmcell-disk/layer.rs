//! Image layers as JSON.

use serde_json::{Value, json};
use vmcell::disk::image::Layer;
use vmcell_cli::show::name;

pub(crate) fn as_json(layer: &Layer) -> Value {
    let mut told = json!({
        "format": layer.format.to_string(),
        "size": layer.size,
        "allocated": layer.allocated,
        "sealed": layer.sealed,
    });
    name::put(&mut told, "path", &layer.path);
    told
}
