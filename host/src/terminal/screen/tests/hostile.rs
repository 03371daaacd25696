//! Output that exhausts the memory or time of an emulator without limits: executed
//! literally, each of these would take minutes or gigabytes.

use super::{emulate, invariants::assert_invariants};
use crate::terminal::screen::emulator::Emulator;

/// Estimates the bytes that an emulator holds.
fn held_bytes(emulator: &Emulator) -> usize {
    let display = &emulator.display;
    let grids = [&display.active, &display.inactive];
    let cells = grids
        .iter()
        .flat_map(|grid| &grid.rows)
        .map(|row| row.cells().len())
        .sum::<usize>();
    let text = emulator
        .scrollback(usize::MAX)
        .iter()
        .map(String::len)
        .sum::<usize>();
    cells * 32 + text + emulator.parser.held()
}

#[track_caller]
fn assert_bounded(printed: impl AsRef<[u8]>) {
    let mut emulator = emulate(120, 30, printed);
    assert_invariants(&emulator);
    assert!(held_bytes(&emulator) < 5 << 20, "{}", held_bytes(&emulator));
    assert!(emulator.parser.held() <= 2048, "{}", emulator.parser.held());
    assert!(emulator.take_replies().len() <= 4096);
    emulator.feed(b"\x18\x1b\\\x1bcstill here");
    assert_eq!(emulator.text(), "still here");
}

#[test]
fn huge_numbers_are_harmless() {
    assert_bounded("x\x1b[99999999b".repeat(20_000));
    assert_bounded("漢\x1b[65535b".repeat(20_000));
    for last in "@ABCDEFGHIJKLMPSTXZ`abdefghlnrstu".chars() {
        assert_bounded(format!("x\x1b[99999999;99999999{last}").repeat(1_000));
        assert_bounded(format!("\x1b[18446744073709551616{last}").repeat(1_000));
    }
}

#[test]
fn clearing_again_and_again_is_harmless() {
    for clearing in [
        "\x1b[2J",
        "\x1bc",
        "\x1b[41m\x1b[2J",
        "\x1b[?1049h\x1b[?1049l",
        "\x1b[99S",
        "\x1b[99T",
    ] {
        let mut emulator = emulate(1000, 1000, clearing.repeat(3_000));
        emulator.feed(b"\x1bcstill here");
        assert_eq!(emulator.text(), "still here");
    }
}

#[test]
fn strings_without_an_end_are_harmless() {
    for beginning in [
        "\x1b]0;",
        "\x1b]8;;",
        "\x1b]52;c;",
        "\x1bP",
        "\x1bPq",
        "\x1b_G",
        "\x1b^",
        "\x1bX",
        "\x1b[",
        "\x1b(",
    ] {
        for filler in ["a", "1;", "é", "\u{9c}", ":", "0"] {
            assert_bounded([beginning, &filler.repeat(1 << 17)].concat());
        }
    }
}

#[test]
fn marks_without_end_are_harmless() {
    assert_bounded(format!("e{}", "\u{301}".repeat(1 << 18)));
    assert_bounded("e\u{301}\u{302}\u{303}\u{304}\x1b[D\x1b[C".repeat(20_000));
    let marked = emulate(80, 2, format!("e{}", "\u{301}".repeat(100)));
    assert_eq!(marked.text().chars().count(), 4);
}

#[test]
fn long_lines_of_the_longest_characters_fill_no_memory() {
    let mut emulator = Emulator::new(super::size(1000, 2), usize::MAX);
    emulator.feed("🦀\u{e0100}\u{e0101}\u{e0102}".repeat(400_000).as_bytes());
    assert!(held_bytes(&emulator) < 5 << 20, "{}", held_bytes(&emulator));
}

#[test]
fn clipboards_windows_and_titles_are_out_of_reach() {
    let mut emulator = emulate(
        80,
        24,
        "\x1b]52;c;cm0gLXJmIC8=\x07\x1b[8;999;999t\x1b[3;0;0t\x1b[9;1t\x1b[21t\x1b[?3h",
    );
    assert_eq!(emulator.text(), "");
    assert_eq!(emulator.size(), super::size(80, 24));
    assert!(emulator.take_replies().is_empty());
    assert!(emulator.screen().title.is_empty());
}
