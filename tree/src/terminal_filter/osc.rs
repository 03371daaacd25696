//! Filters operating system commands (OSC).

use super::state::{Change, Changes};
use crate::printable::printable;

/// The maximum length of a title in characters.
const MAX_TITLE: usize = 256;

/// Passes an OSC (the bytes between `ESC ]` and its terminator) if it sets the
/// title or a colour, or if it is a link to a web page.
pub(super) fn pass(osc: &[u8], changes: &mut Changes, passed: &mut Vec<u8>) {
    let separator = osc.iter().position(|byte| *byte == b';');
    let (number, rest) = osc.split_at(separator.unwrap_or(osc.len()));
    let argument = rest.strip_prefix(b";");
    match (number, argument) {
        (b"0" | b"1" | b"2", Some(title)) => {
            if changes.is_new(Change::Title) {
                // Makes the terminal save its current title.
                passed.extend_from_slice(b"\x1b[22;0t");
                changes.record(Change::Title);
            }
            push_osc(number, Some(sanitized_title(title).as_bytes()), passed);
        }
        (b"8", Some(link)) => pass_link(link, changes, passed),
        _ => pass_colour(number, argument, changes, passed),
    }
}

/// Passes a link to a web page. A click on another link could open files or
/// programs of the user. The end of a link always passes.
fn pass_link(link: &[u8], changes: &mut Changes, passed: &mut Vec<u8>) {
    let separator = link.iter().position(|byte| *byte == b';');
    let (parameters, target) = link.split_at(separator.unwrap_or(link.len()));
    let target = target.strip_prefix(b";").unwrap_or(target);
    let is_web = target.starts_with(b"https://") || target.starts_with(b"http://");
    let visible = |text: &[u8]| text.iter().all(u8::is_ascii_graphic);
    if is_web && visible(target) && visible(parameters) {
        changes.record(Change::Link);
        push_osc(b"8", Some(link), passed);
    } else if !changes.is_new(Change::Link) {
        // What follows must not belong to the previous link.
        changes.clear(Change::Link);
        push_osc(b"8", Some(b";"), passed);
    }
}

/// Passes a command that sets or resets a colour. With a question mark in its
/// place, the terminal would report the colour.
fn pass_colour(
    number: &[u8],
    argument: Option<&[u8]>,
    changes: &mut Changes,
    passed: &mut Vec<u8>,
) {
    let change = match number {
        b"4" | b"104" => Change::Palette,
        b"10" | b"110" => Change::Foreground,
        b"11" | b"111" => Change::Background,
        b"12" | b"112" => Change::CursorColour,
        _ => return,
    };
    let is_colour = |byte: &u8| byte.is_ascii_alphanumeric() || b"#:/;.-".contains(byte);
    if argument.is_none_or(|argument| argument.iter().all(is_colour)) {
        changes.record(change);
        push_osc(number, argument, passed);
    }
}

fn push_osc(number: &[u8], argument: Option<&[u8]>, passed: &mut Vec<u8>) {
    passed.extend_from_slice(b"\x1b]");
    passed.extend_from_slice(number);
    if let Some(argument) = argument {
        passed.push(b';');
        passed.extend_from_slice(argument);
    }
    passed.extend_from_slice(b"\x1b\\");
}

/// Returns a title as one line of limited length, without control characters.
fn sanitized_title(title: &[u8]) -> String {
    let line = printable(title).replace(['\n', '\t'], " ");
    line.chars().take(MAX_TITLE).collect()
}
