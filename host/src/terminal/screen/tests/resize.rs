use proptest::prelude::*;

use super::{
    emulate,
    invariants::{assert_invariants, printed},
    size,
};

#[test]
fn fewer_rows_keep_the_cursor_and_the_rows_above_it() {
    let mut emulator = emulate(20, 6, "1\r\n2\r\n3\r\n4\r\n5\r\n$ ");
    emulator.resize(size(20, 3));
    assert_eq!(emulator.text(), "4\n5\n$");
    assert_eq!(emulator.scrollback(9), ["1", "2", "3"]);
    emulator.feed(b"x");
    assert_eq!(emulator.cursor_line(), "$ x");
}

#[test]
fn rows_below_the_cursor_go_first() {
    let mut emulator = emulate(20, 6, "1\r\n2\r\n3");
    emulator.resize(size(20, 4));
    assert_eq!(emulator.text(), "1\n2\n3");
    assert!(emulator.scrollback(9).is_empty());
}

#[test]
fn more_columns_and_rows_are_blank() {
    let mut emulator = emulate(10, 2, "\x1b[41m\x1b[2Jab");
    emulator.resize(size(20, 4));
    let spans = emulator.screen().spans(0);
    assert_eq!(spans.iter().map(|span| span.columns).sum::<u16>(), 10);
    emulator.feed(b"\x1b[0m\x1b[4;20Hx");
    assert_eq!(
        emulator.screen().line(3).unwrap(),
        format!("{}x", " ".repeat(19))
    );
}

#[test]
fn a_wide_character_at_the_new_edge_is_not_cut_in_half() {
    let mut emulator = emulate(10, 2, "abc漢字");
    emulator.resize(size(4, 2));
    assert_eq!(emulator.text(), "abc");
    assert_invariants(&emulator);
}

#[test]
fn a_full_screen_program_draws_again_and_the_main_screen_comes_back() {
    let mut emulator = emulate(
        40,
        5,
        "1\r\n2\r\n3\r\n4\r\n$ vi\x1b[?1049h\x1b[Hfile\x1b[5;1H-- 40 x 5 --",
    );
    emulator.resize(size(30, 3));
    emulator.feed(b"\x1b[H\x1b[2Jfile\x1b[3;1H-- 30 x 3 --");
    assert_eq!(emulator.text(), "file\n\n-- 30 x 3 --");
    emulator.feed(b"\x1b[?1049l");
    assert_eq!(emulator.text(), "3\n4\n$ vi");
    emulator.feed(b"!");
    assert_eq!(emulator.cursor_line(), "$ vi!");
    assert_eq!(emulator.scrollback(9), ["1", "2"]);
}

#[test]
fn the_largest_and_the_smallest_size_work() {
    let mut emulator = emulate(1, 1, "漢ab\x1b[2;2Hc\r\n");
    assert_invariants(&emulator);
    emulator.resize(size(1000, 1000));
    emulator.feed("漢\x1b[1000;1000H漢x\n\x1b[1000Sy".as_bytes());
    assert_invariants(&emulator);
    emulator.resize(size(1, 1));
    assert_invariants(&emulator);
}

proptest! {
    #[test]
    fn whatever_is_printed_between_changes_of_size_leaves_a_screen_that_is_sound(
        steps in prop::collection::vec((printed(), 1..12u16, 1..8u16), 1..8)
    ) {
        let mut emulator = emulate(5, 5, "");
        for (printed, columns, rows) in steps {
            emulator.feed(&printed);
            emulator.resize(size(columns, rows));
            assert_invariants(&emulator);
        }
    }
}
