//! Converts untrusted text from a guest to text that is safe to print.
//!
//! A terminal obeys the escape sequences that are printed on it, and a guest
//! may send any bytes. All programs of this project print a guest's text
//! through this module: [`printable`] for whole texts, [`printable_name`] for
//! names that must stay on one line, [`Sanitizer`] for output that arrives in
//! pieces.
//!
//! The result is always valid UTF-8, so the terminal must use UTF-8. Invalid
//! bytes, including lone 8-bit controls (0x80 to 0x9F), become U+FFFD.

mod character;
mod sanitizer;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use character::{is_hidden, is_printable};
pub use sanitizer::{ColourPolicy, Sanitizer};

/// Converts bytes from a guest to text that is safe to print on a terminal.
///
/// Replaces with U+FFFD: control characters except newline and tab, characters
/// that reorder or hide others, and invalid UTF-8. Removes the carriage return
/// before a newline.
///
/// Copies nothing if nothing has to be replaced.
///
/// ```
/// assert_eq!(vmcell_tree::printable(b"a\x1b[2Jb\r\n"), "a\u{fffd}[2Jb\n");
/// assert_eq!(vmcell_tree::printable(b"lone \x9b31m"), "lone \u{fffd}31m");
/// ```
pub fn printable(bytes: &[u8]) -> Cow<'_, str> {
    let mut sanitizer = Sanitizer::new(ColourPolicy::Replace);
    match sanitizer.feed(bytes) {
        // Borrowed output means that nothing is pending.
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text + &sanitizer.finish()),
    }
}

/// Like [`printable`], for text that must stay on one line, such as a file
/// name: also replaces newlines and tabs.
///
/// ```
/// assert_eq!(vmcell_tree::printable_name(b"a\nb\t\x9b"), "a\u{fffd}b\u{fffd}\u{fffd}");
/// ```
pub fn printable_name(bytes: &[u8]) -> Cow<'_, str> {
    let text = printable(bytes);
    match text.contains(['\n', '\t']) {
        true => text.replace(['\n', '\t'], "\u{fffd}").into(),
        false => text,
    }
}

/// Returns a text without a last character of which bytes are missing, as in the beginning of
/// a file. Bytes that are no text are left as they are.
///
/// ```
/// assert_eq!(vmcell_tree::whole_characters(b"a\xe2\x82"), b"a");
/// assert_eq!(vmcell_tree::whole_characters(b"a\xff"), b"a\xff");
/// ```
pub fn whole_characters(text: &[u8]) -> &[u8] {
    match std::str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => &text[..error.valid_up_to()],
        _ => text,
    }
}

/// Returns the longest prefix of a text that has at most `max_bytes` bytes.
pub fn truncate_text(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
