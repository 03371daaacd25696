//! JSON schemas of what tools get and return.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// Returns the schema of what a tool gets.
pub(crate) fn of_input<T: JsonSchema>() -> JsonObject {
    of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the schema of what a tool returns.
pub(crate) fn of_output<T: JsonSchema>() -> Arc<JsonObject> {
    Arc::new(of::<T>(SchemaSettings::draft2020_12().for_serialize()))
}

fn of<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = Value::from(schema);
    shorten(&mut schema);
    match schema {
        Value::Object(mut schema) => {
            schema.remove("title");
            schema.remove("description");
            schema.entry("type").or_insert("object".into());
            schema
        }
        _ => JsonObject::new(),
    }
}

/// Removes what is of no use to a model: the sizes of integers in Rust, and the names of
/// types.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("format").is_some_and(Value::is_string) {
                members.remove("format");
            }
            members.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}
