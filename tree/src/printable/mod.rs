//! Text from a guest, made safe to print for people.
//!
//! Everything that a guest says is hostile, and a terminal obeys what is printed
//! on it. All programs of this project print a guest's text through this module:
//! [`printable`] for whole texts, [`printable_name`] for what must stay in its
//! line, [`Sanitizer`] for output that comes in pieces.
//!
//! The result is always valid UTF-8, so a terminal has to be one that reads
//! UTF-8. Bytes that are none, lone 8-bit controls (0x80 to 0x9F) among them,
//! become U+FFFD.

mod character;
mod sanitizer;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use character::{is_hidden, is_printable};
pub use sanitizer::{ColourPolicy, Sanitizer};

/// Bytes from a guest as text that is safe to print: no control characters but
/// newline and tab, and none of the characters that reorder or hide others. So
/// nothing in it can drive a terminal. Each one is replaced by U+FFFD; the
/// return before a newline is left out.
///
/// Nothing is copied where nothing has to be replaced.
///
/// ```
/// assert_eq!(vmcell_tree::printable(b"a\x1b[2Jb\r\n"), "a\u{fffd}[2Jb\n");
/// assert_eq!(vmcell_tree::printable(b"lone \x9b31m"), "lone \u{fffd}31m");
/// ```
pub fn printable(bytes: &[u8]) -> Cow<'_, str> {
    let mut sanitizer = Sanitizer::new(ColourPolicy::Replace);
    match sanitizer.pass(bytes) {
        // It holds nothing back then.
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text + &sanitizer.finish()),
    }
}

/// The same for what has to stay in its line, for example the name of a file:
/// newlines and tabs are replaced too.
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

/// As much of a text as fits in so many bytes.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
