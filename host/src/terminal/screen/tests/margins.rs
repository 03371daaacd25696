//! Left and right margins, as in xterm 379.

use super::{TABLE, emulate, shows};

const TEXT: [&str; 5] = [
    "abcdefghij",
    "0123456789",
    "ABCDEFGHIJ",
    "klmnopqrst",
    "KLMNOPQRST",
];

/// Prints between the third and the sixth column of the table.
#[track_caller]
fn between(printed: &str, changed: &[(usize, &str)]) {
    let mut rows = TEXT;
    for (row, text) in changed {
        rows[*row] = text;
    }
    let printed = format!("{TABLE}\x1b[?69h\x1b[3;6s{printed}");
    shows(printed, rows.join("\n"));
}

#[test]
fn text_wraps_at_the_right_margin_to_the_left_one() {
    between("\x1b[2;3HXYZWVU", &[(1, "01XYZW6789"), (2, "ABVUEFGHIJ")]);
    between("\x1b[2;1HXYZWVUTS", &[(1, "XYZWVU6789"), (2, "ABTSEFGHIJ")]);
    between("\x1b[2;3HXYZ漢", &[(1, "01XYZ56789"), (2, "AB漢EFGHIJ")]);
    between("\x1b[2;3HX\x1b[5b", &[(1, "01XXXX6789"), (2, "ABXXEFGHIJ")]);
    between("\x1b[?7l\x1b[2;3HXYZWVU", &[(1, "01XYZU6789")]);
}

#[test]
fn text_right_of_the_margins_wraps_at_the_last_column() {
    between("\x1b[2;8HXYZWV", &[(1, "0123456XYZ"), (2, "ABWVEFGHIJ")]);
}

#[test]
fn insert_mode_moves_text_from_the_left_margin_on() {
    between("\x1b[4h\x1b[2;1HXYZW", &[(1, "XYZW236789")]);
    between("\x1b[4h\x1b[2;1HX\x1b[3b", &[(1, "XXXX236789")]);
    between("\x1b[4h\x1b[2;8HXY", &[(1, "0123456XY9")]);
}

#[test]
fn the_cursor_stops_at_the_margins() {
    for (printed, row) in [
        ("\x1b[2;5H\rx", "01x3456789"),
        ("\x1b[2;2H\rx", "x123456789"),
        ("\x1b[2;4H\x08\x08\x08x", "01x3456789"),
        ("\x1b[2;2H\x08\x08x", "x123456789"),
        ("\x1b[2;5H\x1b[9Dx", "01x3456789"),
        ("\x1b[2;4H\x1b[9Cx", "01234x6789"),
        ("\x1b[2;8H\x1b[9Cx", "012345678x"),
        ("\x1b[2;4H\tx", "01234x6789"),
        ("\x1b[2;5H\x1b[9ax", "012345678x"),
        ("\x1b[1;5H\x1b[Ex", "01x3456789"),
        ("\x1b[3;5H\x1b[Fx", "01x3456789"),
        ("\x1b[1;5H\x1bEx", "01x3456789"),
    ] {
        between(printed, &[(1, row)]);
    }
}

#[test]
fn only_what_is_between_the_margins_scrolls() {
    let up = [
        (0, "ab2345ghij"),
        (1, "01CDEF6789"),
        (2, "ABmnopGHIJ"),
        (3, "klMNOPqrst"),
        (4, "KL    QRST"),
    ];
    between("\x1b[S", &up);
    between("\x1b[5;4H\n", &up);
    let down = [
        (0, "ab    ghij"),
        (1, "01cdef6789"),
        (2, "AB2345GHIJ"),
        (3, "klCDEFqrst"),
        (4, "KLmnopQRST"),
    ];
    between("\x1b[T", &down);
    between("\x1b[1;4H\x1bM", &down);
    between("\x1b[5;1H\nx", &[(4, "xLMNOPQRST")]);
    between("\x1b[1;9H\x1bMx", &[(0, "abcdefghxj")]);
    let inner = [(1, "01CDEF6789"), (2, "AB    GHIJ")];
    between("\x1b[2;3r\x1b[3;4H\n", &inner);
    let blank = [
        (0, "ab    ghij"),
        (1, "01    6789"),
        (2, "AB    GHIJ"),
        (3, "kl    qrst"),
        (4, "KL    QRST"),
    ];
    between("\x1b[99S", &blank);
    between("\x1b[99T", &blank);
}

#[test]
fn what_scrolls_between_margins_is_not_in_the_scrollback() {
    let printed = format!("{TABLE}\x1b[?69h\x1b[3;6s\x1b[2S");
    assert!(emulate(10, 5, printed).scrollback(9).is_empty());
}

#[test]
fn rows_and_characters_are_inserted_and_deleted_between_the_margins() {
    between("\x1b[4;4H\x1b[Lx", &[(3, "klx   qrst"), (4, "KLmnopQRST")]);
    between("\x1b[4;4H\x1b[Mx", &[(3, "klxNOPqrst"), (4, "KL    QRST")]);
    between("\x1b[2;4H\x1b[@", &[(1, "012 346789")]);
    between("\x1b[2;4H\x1b[P", &[(1, "01245 6789")]);
    between("\x1b[2;3H\x1b[4hXY", &[(1, "01XY236789")]);
    for outside in ["\x1b[L", "\x1b[M", "\x1b[@", "\x1b[P"] {
        between(&format!("\x1b[2;2H{outside}"), &[]);
        between(&format!("\x1b[2;8H{outside}"), &[]);
    }
    between("\x1b[2;4H\x1b[9X", &[(1, "012")]);
}

#[test]
fn wide_characters_at_a_margin_are_blanked_and_not_cut() {
    let rows = "ab漢cd漢e\r\nab漢cd漢e\x1b[?69h\x1b[4;7s\x1b[1;4H";
    shows(format!("{rows}\x1b[L"), "ab      e\nab  cd  e\n    cd");
    shows(format!("{rows}\x1b[M"), "ab  cd  e\nab      e");
    // xterm moves the cell of the half that it blanked.
    shows(format!("{rows}\x1b[@"), "ab   cd e\nab漢cd漢e");
}

#[test]
fn positions_count_from_the_margins_in_origin_mode() {
    between("\x1b[?6hx", &[(0, "abxdefghij")]);
    between("\x1b[?6h\x1b[2;99Hx", &[(1, "01234x6789")]);
    between("\x1b[?6h\x1b[2;2H\x1b[3Gx", &[(1, "0123x56789")]);
    let printed = "\x1b[?69h\x1b[3;6s\x1b[2;4r\x1b[?6h\x1b[2;3H\x1b[6n";
    assert_eq!(emulate(10, 5, printed).take_replies(), b"\x1b[2;3R");
}

#[test]
fn margins_need_their_mode_and_end_with_it() {
    let text = TEXT.join("\n");
    let moved = text.replace("0123456789", "012x345678");
    for printed in [
        "\x1b[3;6s",
        "\x1b[?69h\x1b[3;6s\x1b[?69l",
        "\x1b[?69h\x1b[3;6s\x1b[!p",
        "\x1b[?69h\x1b[6;3s",
        "\x1b[?69h\x1b[3;3s",
        "\x1b[?69h\x1b[3;6s\x1b[s",
    ] {
        let printed = format!("{TABLE}{printed}\x1b[2;4H\x1b[@x");
        shows(printed, &moved);
    }
    let mode = |printed: &str| emulate(10, 5, printed).take_replies();
    assert_eq!(mode("\x1b[?69$p"), b"\x1b[?69;2$y");
    assert_eq!(mode("\x1b[?69h\x1b[?69$p"), b"\x1b[?69;1$y");
}

#[test]
fn a_new_size_ends_margins() {
    let mut emulator = emulate(10, 5, "\x1b[?69h\x1b[3;6s");
    emulator.resize(super::size(12, 5));
    emulator.feed(b"\x1b[3;1Hxxxxxxxx");
    assert_eq!(emulator.cursor_line(), "xxxxxxxx");
}
