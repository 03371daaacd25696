/// Bytes from a guest as text that is safe to print: no control characters but
/// newline and tab, so nothing in it can drive a terminal.
///
/// ```
/// assert_eq!(vmcell::printable(b"a\x1b[2Jb\r\n"), "a\u{fffd}[2Jb\n");
/// ```
pub fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .chars()
        .map(|character| match character {
            '\n' | '\t' => character,
            // Characters that reorder or hide what surrounds them.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                char::REPLACEMENT_CHARACTER
            }
            _ if character.is_control() => char::REPLACEMENT_CHARACTER,
            _ => character,
        })
        .collect()
}

/// As much of a text as fits in so many bytes.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
