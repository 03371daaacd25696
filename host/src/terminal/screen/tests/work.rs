//! The work that output causes on the largest screen, counted in cells.

use super::{emulate, size};
use crate::terminal::screen::{Emulator, ScreenHealth, work};

/// How many cells a byte may change: most of a row, and some that it earned.
const CELLS_PER_BYTE: usize = 800;

/// How many cells may be changed once: what is saved up, which is two screens,
/// each cell twice.
const CELLS_AT_ONCE: usize = 4 << 20;

const LENGTH: usize = 16 << 10;

fn largest() -> Emulator {
    Emulator::new(size(1000, 1000), 0)
}

#[track_caller]
fn assert_bounded(before: &str, sequence: &str) {
    let mut emulator = largest();
    emulator.feed(before.as_bytes());
    work::take();
    emulator.feed(sequence.repeat(LENGTH / sequence.len()).as_bytes());
    let cells = work::take();
    let bound = LENGTH * CELLS_PER_BYTE + CELLS_AT_ONCE;
    assert!(cells < bound, "{before:?} {sequence:?}: {cells}");
}

#[test]
fn repeating_in_insert_mode_moves_each_row_once() {
    assert_bounded("\x1b#8\x1b[4h", "x\x1b[999b");
    assert_bounded("\x1b#8\x1b[4h", "x\x1b[999b\x1b[H");
    assert_bounded("\x1b#8\x1b[4h", "漢\x1b[499b\r");
    assert_bounded("\x1b#8\x1b[4h", "x\r");
    assert_bounded("\x1b#8\x1b[4h\x1b[?7l\x1b[999G", "x\x1b[65535b");
    let mut emulator = largest();
    emulator.feed(b"\x1b#8\x1b[4h");
    work::take();
    emulator.feed(b"x\x1b[998b");
    assert!(work::take() <= 3 * 1000);
    emulator.feed("\r".repeat(9).as_bytes());
    emulator.feed("y".repeat(999).as_bytes());
    assert!(work::take() <= 1000);
}

#[test]
fn repeating_beyond_a_row_is_bounded() {
    assert_bounded("", "x\x1b[65535b");
    assert_bounded("\x1b[41m", "漢\x1b[65535b");
}

#[test]
fn filling_and_erasing_again_and_again_is_bounded() {
    for sequence in [
        "\x1b#8",
        "\x1b[42$x",
        "\x1b[42;1;2;999;999$x",
        "\x1b[42;1;999;1000;1000$x\x1b[2J",
        "\x1b[1;1;999;999$z",
        "\x1b[${",
        "\x1b[?2J",
        "\x1b[?J",
        "\x1b[?1J",
        "\x1b[?2K",
    ] {
        assert_bounded("\x1b[1\"q\x1b[42$x\x1b[41m", sequence);
    }
}

#[test]
fn moving_columns_again_and_again_is_bounded() {
    for sequence in [
        "\x1b['}",
        "\x1b['~",
        "\x1b[999'}",
        "\x1b[ @",
        "\x1b[ A",
        "\x1b6",
        "\x1b[1000G\x1b9",
        "\x1b[@",
        "\x1b[P",
        "\x1b[999@",
        "\x1b[999X",
        "\x1b[2K",
        "\x1b[42m\x1b[P\x1b[43m\x1b[@",
    ] {
        assert_bounded("\x1b#8", sequence);
    }
}

#[test]
fn scrolling_between_margins_is_bounded() {
    for sequence in [
        "\n",
        "\x1bD",
        "\x1bM",
        "\x1b[S",
        "\x1b[999T",
        "\x1b[L",
        "\x1b[M",
    ] {
        assert_bounded("\x1b#8\x1b[?69h\x1b[2;999s\x1b[1000;5H", sequence);
        assert_bounded("\x1b#8\x1b[?69h\x1b[2;999s\x1b[1;5H", sequence);
    }
}

#[test]
fn what_was_not_executed_makes_the_screen_incomplete_until_it_is_cleared() {
    let mut emulator = largest();
    emulator.feed(b"\x1b[42$x");
    assert_eq!(emulator.screen().health, ScreenHealth::Good);
    emulator.feed("\x1b[43$x".repeat(100).as_bytes());
    assert_eq!(emulator.screen().health, ScreenHealth::Incomplete);
    emulator.feed(b"\x1b[2J");
    assert_eq!(emulator.screen().health, ScreenHealth::Good);
    emulator.feed("text ".repeat(2000).as_bytes());
    emulator.feed(b"\x1b[44$x");
    assert_eq!(emulator.cursor_line(), ",".repeat(1000));
}

#[test]
fn programs_on_screens_of_the_usual_size_never_lack_anything() {
    let health = |printed: String| emulate(120, 30, printed).screen().health;
    for sequence in [
        "\x1b#8\x1b[2J",
        "\x1b[42$x",
        "\x1b[1\"q\x1b[?2J",
        "x\x1b[3600b",
        "\x1b[9'}",
        "\x1b[?69h\x1b[61;119s\n",
    ] {
        assert_eq!(
            health(sequence.repeat(250)),
            ScreenHealth::Good,
            "{sequence:?}"
        );
    }
    // An editor scrolls one of two windows that are side by side.
    let scroll = "\x1b[?69h\x1b[61;119s\x1b[1;28r\x1b[S\x1b[?69l\x1b[r\x1b[28;61Hlet next = 1;";
    assert_eq!(health(scroll.repeat(20_000)), ScreenHealth::Good);
}

#[test]
fn what_is_executed_does_not_depend_on_how_output_is_cut() {
    let printed = "\x1b[42$x\x1b[10;10Hsome text\x1b[43;3;3;9;9$x\r\n".repeat(20);
    let whole = {
        let mut emulator = largest();
        emulator.feed(printed.as_bytes());
        emulator.screen()
    };
    assert_eq!(whole.health, ScreenHealth::Incomplete);
    for cut in [1, 7, 100] {
        let mut emulator = largest();
        for piece in printed.as_bytes().chunks(cut) {
            emulator.feed(piece);
        }
        assert!(emulator.screen() == whole, "in pieces of {cut}");
    }
}
