//! Rectangles and columns, as in xterm 379.

use super::{TABLE, emulate, screen, shows};
use crate::terminal::screen::{Colour, Style};

/// Prints after the table.
#[track_caller]
fn changes(printed: &str, expected: [&str; 5]) {
    shows(format!("{TABLE}{printed}"), expected.join("\n"));
}

#[test]
fn the_alignment_pattern_fills_the_screen_and_resets_margins() {
    let full = ["EEEEEEEEEE"; 5];
    changes("\x1b#8", full);
    let printed = "\x1b[41m\x1b[?69h\x1b[2;4s\x1b[2;3r\x1b[?6h\x1b#8";
    changes(printed, full);
    let pattern = screen(10, 5, printed);
    assert_eq!((pattern.cursor.row, pattern.cursor.column), (0, 0));
    assert_eq!(pattern.spans(4)[0].style, Style::default());
    let mut after = full;
    after[3] = "xEEEEEEEEE";
    changes("\x1b[2;3r\x1b#8\n\n\nx", after);
}

#[test]
fn a_rectangle_is_filled() {
    let filled = [
        "abcdefghij",
        "01***56789",
        "AB***FGHIJ",
        "kl***pqrst",
        "KLMNOPQRST",
    ];
    changes("\x1b[42;2;3;4;5$x", filled);
    changes("\x1b[42$x", ["**********"; 5]);
    changes("\x1b[42;;;;$x", ["**********"; 5]);
    let below = "\x1b[233;4;9;99;99$x";
    let corner = [
        "abcdefghij",
        "0123456789",
        "ABCDEFGHIJ",
        "klmnopqréé",
        "KLMNOPQRéé",
    ];
    changes(below, corner);
    shows("ab漢cd\x1b[42;1;1;1;3$x", "*** cd");
    shows("ab漢cd\x1b[42;1;4;1;9$x", "ab ******");
    let styled = screen(10, 5, "\x1b[1;41m\x1b[42;1;1;1;2$x");
    assert_eq!(styled.spans(0)[0].style.background, Colour::Palette(1));
}

#[test]
fn nothing_is_filled_with_what_takes_no_single_column() {
    let text = TABLE.replace("\r\n", "\n");
    for code in [0, 7, 127, 128, 769, 8206, 20320, 55296] {
        shows(format!("{TABLE}\x1b[{code};1;1;2;2$x"), &text);
    }
    shows(format!("{TABLE}\x1b[42;4;5;2;3$x"), &text);
    shows(format!("{TABLE}\x1b[42;6;1;9;9$x"), &text);
}

#[test]
fn a_rectangle_is_erased() {
    let erased = [
        "abcdefghij",
        "01   56789",
        "AB   FGHIJ",
        "kl   pqrst",
        "KLMNOPQRST",
    ];
    changes("\x1b[2;3;4;5$z", erased);
    changes("\x1b[2;3;4;5${", erased);
    shows(format!("{TABLE}\x1b[$z"), "");
}

#[test]
fn a_rectangle_counts_from_the_margins_in_origin_mode() {
    let filled = [
        "abcdefghij",
        "01****6789",
        "AB****GHIJ",
        "klmnopqrst",
        "KLMNOPQRST",
    ];
    changes(
        "\x1b[?69h\x1b[3;6s\x1b[2;3r\x1b[?6h\x1b[42;1;1;9;9$x",
        filled,
    );
}

#[test]
fn columns_are_inserted_and_deleted_between_the_margins() {
    let inserted = [
        "abcdefghij",
        "01  234567",
        "AB  CDEFGH",
        "kl  mnopqr",
        "KLMNOPQRST",
    ];
    changes("\x1b[2;4r\x1b[3;3H\x1b[2'}", inserted);
    let deleted = [
        "abcdefghij",
        "013456789",
        "ABDEFGHIJ",
        "klnopqrst",
        "KLMNOPQRST",
    ];
    changes("\x1b[2;4r\x1b[3;3H\x1b['~", deleted);
    let between = [
        "abc deghij",
        "012 346789",
        "ABC DEGHIJ",
        "klm noqrst",
        "KLM NOQRST",
    ];
    changes("\x1b[?69h\x1b[3;6s\x1b[2;4H\x1b['}", between);
    let text = TABLE.replace("\r\n", "\n");
    shows(format!("{TABLE}\x1b[2;4r\x1b[1;3H\x1b['~"), &text);
    changes("\x1b[3;3H\x1b[99'~", ["ab", "01", "AB", "kl", "KL"]);
}

#[test]
fn a_cursor_at_the_edge_moves_the_columns() {
    let right = [
        " abcdefghi",
        "x012345678",
        " ABCDEFGHI",
        " klmnopqrs",
        " KLMNOPQRS",
    ];
    changes("\x1b[2;1H\x1b6x", right);
    let left = [
        "bcdefghij",
        "123456789x",
        "BCDEFGHIJ",
        "lmnopqrst",
        "LMNOPQRST",
    ];
    changes("\x1b[2;10H\x1b9x", left);
}

#[test]
fn everything_scrolls_left_and_right() {
    changes(
        "\x1b[2 @",
        ["cdefghij", "23456789", "CDEFGHIJ", "mnopqrst", "MNOPQRST"],
    );
    changes(
        "\x1b[8 A",
        [
            "        ab",
            "        01",
            "        AB",
            "        kl",
            "        KL",
        ],
    );
}

#[test]
fn rectangles_reply_nothing() {
    let mut emulator = emulate(10, 5, "\x1b[42$x\x1b[$z\x1b[${\x1b[1;1;1;1;1;1*y");
    assert!(emulator.take_replies().is_empty());
}
