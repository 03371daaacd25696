//! Filters escape and control sequences (ESC, CSI).

use super::{
    push,
    state::{Change, Changes},
};

/// Passes an escape sequence if it only draws.
pub(super) fn pass_escape(
    intermediate: Option<char>,
    last: char,
    changes: &mut Changes,
    passed: &mut Vec<u8>,
) {
    match (intermediate, last) {
        // Saving and restoring the cursor, line feeds, tab stops.
        (None, '7' | '8' | 'D' | 'E' | 'H' | 'M') => {}
        (None, '=') => changes.record(Change::Keypad),
        (None, '>') => changes.clear(Change::Keypad),
        (None, 'c') => changes.reset(),
        // Double height and width, and a test pattern.
        (Some('#'), '3'..='6' | '8') => {}
        // US, line drawing and British characters.
        (Some('(' | ')' | '*' | '+'), 'B') => {}
        (Some('(' | ')' | '*' | '+'), '0' | 'A') => changes.record(Change::CharacterSet),
        // Queries, other encodings and unknown sequences do not pass.
        _ => return,
    }
    for character in ['\x1b'].into_iter().chain(intermediate).chain([last]) {
        push(character, passed);
    }
}

/// Passes a control sequence if it only draws. `between` has the bytes between
/// `ESC [` and the final one.
pub(super) fn pass_csi(between: &[u8], last: char, changes: &mut Changes, passed: &mut Vec<u8>) {
    let Some(parts) = CsiParts::of(between) else {
        return;
    };
    match (parts.prefix, parts.intermediate, last) {
        // Moving the cursor; inserting, deleting, erasing, repeating; tab
        // stops; saving and restoring the cursor.
        (None, b"", '@'..='M' | 'P' | 'S' | 'X' | 'Z' | '`') => {}
        (None, b"", 'a' | 'b' | 'd'..='g' | 's' | 'u') => {}
        // With more parameters, xterm tracks the mouse and reports its
        // position.
        (None, b"", 'T') if !parts.parameters.contains(&b';') => {}
        (None, b"", 'm') => match parts.parameters {
            b"" | b"0" => changes.clear(Change::Style),
            _ => changes.record(Change::Style),
        },
        (None, b"", 'r') => match parts.parameters {
            b"" => changes.clear(Change::Margins),
            _ => changes.record(Change::Margins),
        },
        (None, b"", 'h') if parts.parameters == b"4" => changes.record(Change::Insertion),
        (None, b"", 'l') if parts.parameters == b"4" => changes.clear(Change::Insertion),
        (None, b" ", 'q') => changes.record(Change::CursorShape),
        // Scrolling and inserting sideways, protected characters, a soft reset.
        (None, b" ", '@' | 'A') | (None, b"'", '}' | '~') => {}
        (None, b"\"", 'q') | (None, b"!", 'p') => {}
        (Some(b'?'), b"", 'J' | 'K') => {}
        (Some(b'?'), b"", 'h' | 'l') => {
            return pass_modes(parts.parameters, last, changes, passed);
        }
        // Queries and reports, windows, printers, keyboard protocols and
        // unknown sequences do not pass.
        _ => return,
    }
    push_csi(between, last, passed);
}

/// The parts of a control sequence: ECMA-48, 5.4.
struct CsiParts<'a> {
    prefix: Option<u8>,
    parameters: &'a [u8],
    intermediate: &'a [u8],
}

impl<'a> CsiParts<'a> {
    fn of(between: &'a [u8]) -> Option<Self> {
        let (prefix, rest) = match between {
            [prefix @ b'<'..=b'?', rest @ ..] => (Some(*prefix), rest),
            _ => (None, between),
        };
        let is_parameter = |byte: &u8| matches!(byte, b'0'..=b';');
        let end = rest.iter().position(|byte| !is_parameter(byte));
        let (parameters, intermediate) = rest.split_at(end.unwrap_or(rest.len()));
        let well_formed = intermediate.iter().all(|byte| (0x20..0x30).contains(byte));
        well_formed.then_some(Self {
            prefix,
            parameters,
            intermediate,
        })
    }
}

/// Passes the modes of a list that may be changed.
fn pass_modes(list: &[u8], last: char, changes: &mut Changes, passed: &mut Vec<u8>) {
    let numbers = list.split(|byte| *byte == b';');
    let allowed: Vec<&[u8]> = numbers
        .filter(|number| {
            let number = std::str::from_utf8(number).ok();
            let number = number.and_then(|number| number.parse().ok());
            number.is_some_and(|number| changes.record_mode(number, last == 'h'))
        })
        .collect();
    if !allowed.is_empty() {
        push_csi(
            &[b"?", allowed.join(&b';').as_slice()].concat(),
            last,
            passed,
        );
    }
}

fn push_csi(between: &[u8], last: char, passed: &mut Vec<u8>) {
    passed.extend_from_slice(b"\x1b[");
    passed.extend_from_slice(between);
    push(last, passed);
}
