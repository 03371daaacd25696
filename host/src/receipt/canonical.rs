//! Canonical JSON: RFC 8785 for values without fractions.

use serde_json::Value;

use super::ReceiptError;

/// Returns a value as text of which there is only one: keys sorted by their UTF-16 units, no
/// spaces, and integers only.
///
/// # Errors
/// [`ReceiptError::Fraction`] if it has another number than an integer.
pub(crate) fn canonical(value: &Value) -> Result<String, ReceiptError> {
    let mut text = String::new();
    write(value, &mut text)?;
    Ok(text)
}

fn write(value: &Value, text: &mut String) -> Result<(), ReceiptError> {
    match value {
        Value::Number(number) if number.is_f64() => return Err(ReceiptError::Fraction),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            *text += &value.to_string();
        }
        Value::Array(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write(item, text)?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (number, (key, member)) in members.into_iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                *text += &Value::from(key.as_str()).to_string();
                text.push(':');
                write(member, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn there_is_one_text_for_a_value() {
        let value = json!({ "b": [1, -2, null, true], "a\n": "\u{7f}ä\"", "\u{fb33}": 1, "😀": 2 });
        let text = canonical(&value).unwrap();
        // By UTF-16 units the emoji comes before U+FB33.
        let expected = "{\"a\\n\":\"\u{7f}ä\\\"\",\"b\":[1,-2,null,true],\"😀\":2,\"\u{fb33}\":1}";
        assert_eq!(text, expected);
        let again: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(canonical(&again).unwrap(), text);
        assert!(canonical(&json!({ "seconds": 0.5 })).is_err());
    }
}
