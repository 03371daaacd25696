//! Image layers as JSON.

use serde_json::{Value, json};
use vmcell::disk::image::Layer;
use vmcell_cli::show::name;

pub(crate) fn as_json(layer: &Layer) -> Value {
    let mut object = json!({
        "format": layer.format.to_string(),
        "size": layer.size,
        "allocated": layer.allocated,
        "sealed": layer.sealed,
        "corrupt": layer.corrupt,
    });
    name::insert(&mut object, "path", &layer.path);
    object
}
