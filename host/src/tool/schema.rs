use serde_json::{Value, json};

use super::{Retention, ToolPolicy};

/// Returns the JSON schema (draft 2020-12) of requests under a policy, for the description of
/// a tool that a model gets. It has the names of images, languages and grants, and limits;
/// what a single caller may use is decided when it asks.
pub fn request_schema(policy: &ToolPolicy) -> Value {
    let limits = &policy.limits;
    let names = |names: Vec<&String>| match names.is_empty() {
        true => json!({ "type": "string", "enum": [] }),
        false => json!({ "type": "string", "enum": names }),
    };
    let path = json!({
        "type": "string",
        "pattern": format!("^({})/", limits.roots.join("|")),
        "description": "An absolute path in the sandbox, without `.` and `..`.",
    });
    let retention: Vec<_> = Retention::ALL
        .into_iter()
        .filter(|it| policy.state.retention.contains(it))
        .map(Retention::name)
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Run a command in a sandbox",
        "type": "object",
        "additionalProperties": false,
        "required": ["command", "state"],
        "oneOf": [{ "required": ["language"] }, { "required": ["image"] }],
        "properties": {
            "language": names(policy.languages.keys().collect()),
            "image": names(policy.images.keys().collect()),
            "files": {
                "type": "array",
                "maxItems": limits.files,
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["path"],
                    "oneOf": [{ "required": ["content"] }, { "required": ["content_base64"] }],
                    "properties": {
                        "path": path,
                        "content": { "type": "string", "maxLength": limits.file_bytes },
                        "content_base64": { "type": "string", "contentEncoding": "base64" },
                        "mode": { "type": "string", "pattern": "^0?[0-7]{3}$" },
                    },
                },
            },
            "command": {
                "type": "array",
                "minItems": 1,
                "maxItems": limits.arguments,
                "items": { "type": "string" },
                "description": "The program and its arguments. No shell interprets them.",
            },
            "stdin": { "type": "string", "maxLength": limits.stdin_bytes },
            "working_directory": { "type": "string" },
            "timeout_seconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.timeout_seconds,
                "default": limits.default_timeout_seconds,
            },
            "max_output_bytes": {
                "type": "integer",
                "minimum": 0,
                "maximum": limits.output_bytes,
                "default": limits.default_output_bytes,
            },
            "network": {
                "type": "object",
                "additionalProperties": false,
                "required": ["mode"],
                "properties": {
                    "mode": { "type": "string", "enum": ["none", "grants", "bridge"] },
                    "grants": {
                        "type": "array",
                        "maxItems": limits.destinations,
                        "items": names(policy.network.keys().collect()),
                    },
                    "allow": {
                        "type": "array",
                        "maxItems": limits.destinations,
                        "items": {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["host", "port"],
                            "properties": {
                                "host": { "type": "string" },
                                "port": { "type": "integer", "minimum": 1, "maximum": 65535 },
                            },
                        },
                    },
                },
            },
            "secrets": {
                "type": "object",
                "maxProperties": limits.secrets,
                "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["ref"],
                    "properties": { "ref": names(policy.secrets.keys().collect()) },
                },
            },
            "outputs": { "type": "array", "maxItems": limits.outputs, "items": path },
            "state": {
                "type": "object",
                "additionalProperties": false,
                "required": ["retention"],
                "properties": {
                    "retention": { "type": "string", "enum": retention },
                    "ttl_seconds": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": policy.state.max_ttl_seconds,
                    },
                    "name": { "type": "string" },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tool::ToolRequest;

    /// Returns the keys of the objects in a request, by their paths.
    fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    // The names of variables are any.
                    let key = if path == "secrets." { "*" } else { key };
                    keys(member, &format!("{path}{key}."), found);
                    found.insert(format!("{path}{key}"));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| keys(item, path, found)),
            _ => {}
        }
    }

    /// Returns the properties of a schema, by their paths.
    fn properties(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        let members = schema["properties"].as_object().into_iter().flatten();
        for (key, member) in members {
            found.insert(format!("{path}{key}"));
            properties(member, &format!("{path}{key}."), found);
        }
        if schema["additionalProperties"].is_object() {
            found.insert(format!("{path}*"));
            properties(&schema["additionalProperties"], &format!("{path}*."), found);
        }
        if schema["items"].is_object() {
            properties(&schema["items"], path, found);
        }
    }

    #[test]
    fn it_has_all_fields_of_requests_and_no_others() {
        let request = json!({
            "language": "a", "image": "b", "command": ["c"], "stdin": "d",
            "files": [{ "path": "a", "content": "b", "content_base64": "c", "mode": "644" }],
            "working_directory": "/work", "timeout_seconds": 1, "max_output_bytes": 1,
            "network": { "mode": "bridge", "grants": ["a"], "allow": [{ "host": "a", "port": 1 }] },
            "secrets": { "A": { "ref": "a" } }, "outputs": ["/work/a"],
            "state": { "retention": "snapshot", "ttl_seconds": 1, "name": "a" },
        });
        let request: ToolRequest = serde_json::from_value(request).unwrap();
        let (mut written, mut described) = (BTreeSet::new(), BTreeSet::new());
        keys(&serde_json::to_value(request).unwrap(), "", &mut written);
        properties(&request_schema(&ToolPolicy::new()), "", &mut described);
        assert_eq!(written, described);
    }
}
