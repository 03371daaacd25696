//! For arbitrary output of a guest and any split of it, what reaches the user's terminal is
//! the same, only draws, is not changed by another filter, and can be undone.
//!
//! The first byte of the input is the size of a piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_tree::TerminalFilter;

/// The longest sequence that may pass, with its beginning and its end.
const MAX_SEQUENCE: usize = 4096 + 8;

fuzz_target!(|input: &[u8]| {
    let Some((&piece, output)) = input.split_first() else {
        return;
    };
    let mut filter = TerminalFilter::default();
    let whole = filter.pass(output).into_owned();
    let undo = filter.undo();
    let (mut pieces, mut in_pieces) = (TerminalFilter::default(), Vec::new());
    for piece in output.chunks(usize::from(piece).max(1)) {
        in_pieces.extend_from_slice(&pieces.pass(piece));
    }
    assert_eq!(whole, in_pieces);
    assert_eq!(undo, pieces.undo());

    let text = std::str::from_utf8(&whole).expect("it is text");
    check(text);
    check(std::str::from_utf8(&undo).expect("it is text"));
    assert!(filter.undo().is_empty(), "there is nothing left to undo");

    // What has passed passes again, but for a title that is saved.
    let mut again = TerminalFilter::default();
    let passed = again.pass(&whole).into_owned();
    let passed = String::from_utf8(passed).expect("it is text");
    assert_eq!(passed.replace(SAVE_TITLE, ""), text.replace(SAVE_TITLE, ""));
    assert_eq!(undo, again.undo());
});

const SAVE_TITLE: &str = "\x1b[22;0t";

/// Checks that a text has only complete sequences that draw. It uses nothing of the filter.
fn check(mut text: &str) {
    while let Some(first) = text.chars().next() {
        let length = match first {
            '\x1b' => sequence(text).unwrap_or_else(|| panic!("it does more: {text:?}")),
            '\x07'..='\x0f' => 1,
            _ if first.is_control() => panic!("a control character: {text:?}"),
            _ => first.len_utf8(),
        };
        text = &text[length..];
    }
}

/// Returns the length of the harmless sequence at the start.
fn sequence(text: &str) -> Option<usize> {
    if let Some(osc) = text.strip_prefix("\x1b]") {
        let end = osc.find('\x1b')?;
        let (number, argument) = osc[..end].split_once(';').unwrap_or((&osc[..end], ""));
        let is_harmless = match number {
            "0" | "1" | "2" => argument.chars().count() <= 256,
            "8" => {
                let target = argument.split_once(';')?.1;
                let schemes = ["http://", "https://"];
                target.is_empty() || schemes.iter().any(|scheme| target.starts_with(scheme))
            }
            // With a question mark, a terminal would answer.
            "4" | "10" | "11" | "12" | "104" | "110" | "111" | "112" => !argument.contains('?'),
            _ => false,
        };
        let is_short = end <= MAX_SEQUENCE && !osc[..end].contains(char::is_control);
        let is_whole = osc[end..].starts_with("\x1b\\");
        return (is_harmless && is_short && is_whole).then_some(2 + end + 2);
    }
    if let Some(csi) = text.strip_prefix("\x1b[") {
        for title in ["22;0t", "23;0t"] {
            if csi.starts_with(title) {
                return Some(2 + title.len());
            }
        }
        let end = csi.find(|character: char| ('@'..='~').contains(&character))?;
        let between = &csi[..end];
        let is_syntax = between.bytes().all(|byte| (0x20..0x40).contains(&byte));
        // Reports, windows, printers and keyboard protocols.
        let last = csi[end..].chars().next()?;
        let is_harmless =
            !"cntixyzwvoNOQRUVWY".contains(last) && !between.starts_with(['>', '=', '<']);
        return (is_syntax && is_harmless && end <= 256).then_some(2 + end + 1);
    }
    let end = text[1..].find(|character: char| ('0'..='~').contains(&character))?;
    let last = text[1 + end..].chars().next()?;
    (end <= 1 && "78DEHM=>c01234568AB".contains(last)).then_some(1 + end + 1)
}
