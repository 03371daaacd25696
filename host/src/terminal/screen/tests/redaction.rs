//! Masking of secrets on a screen.

use super::emulate;
use crate::{
    redaction::{ScanMode, SecretSet},
    terminal::screen::Emulator,
};

const COMPLETED: ScanMode = ScanMode::Completed { lines: 100 };

/// Returns the scrollback and the screen after secrets were masked.
fn masked(mut emulator: Emulator, secret: &str, kind: ScanMode) -> String {
    let secrets = SecretSet::new([], [secret.as_bytes()]);
    emulator.redact(&secrets.scan(kind).unwrap());
    let mut lines = emulator.scrollback(1000);
    lines.push(emulator.text());
    lines.join("\n")
}

#[test]
fn letters_that_were_put_together_by_moving_the_cursor_are_masked() {
    let backwards = emulate(20, 5, "x\x1b[8G2\x1b[2Ghun\x1b[5Gter\x1b[9G y");
    assert_eq!(masked(backwards, "hunter2", ScanMode::Exact), "x******* y");
    let other = emulate(20, 5, "hunter hun ter2 hunte2");
    let text = other.text();
    assert_eq!(masked(other, "hunter2", ScanMode::Exact), text);
}

#[test]
fn a_secret_that_wraps_is_masked_also_where_it_left_the_screen() {
    let wrapped = emulate(5, 3, "a: hunter2 b");
    assert_eq!(
        masked(wrapped, "hunter2", ScanMode::Exact),
        "a: **\n*****\n b"
    );
    let left = emulate(5, 3, "a: hunter2 b\r\n1\r\n2\r\n");
    assert_eq!(
        masked(left, "hunter2", ScanMode::Exact),
        "a: **\n*****\n b\n1\n2"
    );
}

#[test]
fn the_letters_of_a_completed_secret_are_masked_wherever_they_stand() {
    let rows = emulate(10, 3, "$ \r\nh\r\n\r\nu\r\n  n\r\nte*\r\n*\r\n");
    assert_eq!(masked(rows, "hunter2", COMPLETED), "$\n*\n\n*\n  *\n***\n*");
    let blanks = emulate(40, 3, "pass phrase: correct horse\r\nbatt*** .");
    assert_eq!(
        masked(blanks, "correct horse battery", COMPLETED),
        "pass phrase: ******* *****\n******* ."
    );
}

#[test]
fn wide_and_accented_letters_are_masked_whole() {
    let wide = emulate(20, 3, "漢字pä*e\u{301}!");
    assert_eq!(masked(wide, "漢字päße\u{301}", COMPLETED), "********!");
}

#[test]
fn both_screens_and_titles_are_searched() {
    let mut emulator = emulate(20, 3, "main hunter2\x1b]0;it is hunter2\x07\x1b[22;0t");
    emulator.feed(b"\x1b[?1049h\x1b[Halternate hunter2");
    let secrets = SecretSet::new([], [&b"hunter2"[..]]);
    emulator.redact(&secrets.scan(ScanMode::Exact).unwrap());
    let screen = emulator.screen();
    assert_eq!(screen.text(), "alternate *******");
    assert_eq!(screen.title, "it is *******");
    emulator.feed(b"\x1b]0;\x07\x1b[23;0t\x1b[?1049l");
    let screen = emulator.screen();
    assert_eq!(screen.text(), "main *******");
    assert_eq!(screen.title, "it is *******");
}
