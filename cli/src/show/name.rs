//! File names, which are bytes, as text and as JSON.

use std::{os::unix::ffi::OsStrExt, path::Path};

use serde_json::Value;
use vmcell::printable_name;
use vmcell_tree::json::hex;

/// Returns a name as one line that cannot control a terminal.
pub fn printable(path: impl AsRef<Path>) -> String {
    printable_bytes(path.as_ref().as_os_str().as_bytes())
}

/// The same for bytes.
pub fn printable_bytes(name: &[u8]) -> String {
    printable_name(name).into_owned()
}

/// Adds a name to a JSON object. If it is not UTF-8, the text is lossy, and the
/// key with the suffix `_bytes` has the bytes in hexadecimal.
pub fn insert(object: &mut Value, key: &str, path: impl AsRef<Path>) {
    insert_bytes(object, key, path.as_ref().as_os_str().as_bytes());
}

/// The same for bytes.
pub fn insert_bytes(object: &mut Value, key: &str, name: &[u8]) {
    object[key] = String::from_utf8_lossy(name).into();
    if std::str::from_utf8(name).is_err() {
        object[format!("{key}_bytes")] = hex(name).into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_keeps_its_bytes_for_machines_and_its_line_for_people() {
        let mut object = json!({});
        insert(&mut object, "path", "schön");
        insert_bytes(&mut object, "target", b"a\xffb");
        let expected = json!({
            "path": "schön",
            "target": "a\u{fffd}b",
            "target_bytes": "61ff62",
        });
        assert_eq!(object, expected);
        assert_eq!(
            printable_bytes(b"a\nb\t\x1b[2J\x9b2J"),
            "a\u{fffd}b\u{fffd}\u{fffd}[2J\u{fffd}2J"
        );
    }
}
