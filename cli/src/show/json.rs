//! JSON that is safe to print on a terminal.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use vmcell::is_printable;

/// Returns a result of the library as JSON.
pub fn value(result: impl Serialize) -> Value {
    // These have no maps with keys other than text, so this does not fail.
    serde_json::to_value(result).unwrap_or_default()
}

/// Formats a value on one line.
pub fn line(value: &Value) -> String {
    escaped(value.to_string())
}

/// Formats a value on several lines.
pub fn lines(value: &Value) -> String {
    escaped(format!("{value:#}"))
}

/// Escapes characters that JSON allows but a terminal would interpret, for
/// example U+009B. They only occur within strings, so the value stays the same.
fn escaped(json: String) -> String {
    if json.chars().all(is_printable) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if is_printable(character) {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_means_the_same() {
        let value = json!({ "a\u{9b}": "\x1b[31m\u{7f}\u{202e}\u{e0041} schön\n" });
        for text in [line(&value), lines(&value)] {
            assert!(text.chars().all(is_printable), "{text:?}");
            assert!(text.contains("\\u009b") && text.contains("schön"), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
