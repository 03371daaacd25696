//! The cursor behind the last column. xterm 379 shows the same where no comment
//! says otherwise.

use super::shows;

const FULL: &str = "0123456789";

#[test]
fn a_tab_behind_the_last_column_overwrites_nothing() {
    for tab in ["\t", "\t\t", "\x1b[I", "\x1b[Z", "\x1b[2Z"] {
        shows(format!("{FULL}{tab}x"), "0123456789\nx");
    }
}

#[test]
fn what_is_inserted_deleted_or_erased_behind_the_last_column_is_in_it() {
    for edit in ["\x1b[@", "\x1b[P", "\x1b[X", "\x1b[K", "\x1b[J"] {
        shows(format!("{FULL}{edit}x"), "012345678x");
    }
    for edit in ["\x1b[2J", "\x1b[1J", "\x1b[2K", "\x1b[?2J", "\x1b[?1K"] {
        shows(format!("{FULL}{edit}x"), "         x");
    }
}

#[test]
fn the_soft_hyphen_takes_a_column() {
    shows("ab\u{ad}cd", "ab\u{ad}cd");
    shows("012345678\u{ad}x", "012345678\u{ad}\nx");
    shows("a\u{ad}\x1b[2b|", "a\u{ad}\u{ad}\u{ad}|");
}

#[test]
fn a_wide_character_without_room_is_left_out_if_text_does_not_wrap() {
    shows("012345678\x1b[?7l漢x", "012345678x");
    shows("0123456789\x1b[?7l漢", "0123456789");
    shows("漢\x1b[?7l\x1b[10G漢", "漢");
    shows("01234567\x1b[?7l漢x", "01234567 x");
    // xterm shows the second one if both come in one piece.
    shows("01234567\x1b[?7l漢字", "01234567漢");
}

#[test]
fn a_repeated_character_goes_on_in_the_next_row() {
    shows("a\x1b[13b|", "aaaaaaaaaa\naaaa|");
    shows("漢\x1b[7b|", "漢漢漢漢漢\n漢漢漢|");
    shows("123456789漢\x1b[3b", "123456789\n漢漢漢漢");
    for count in [50, 60, 203, 65530] {
        let last = "a".repeat(count % 10 + 1);
        shows(
            format!("a\x1b[{count}b|"),
            "aaaaaaaaaa\n".repeat(4) + &last + "|",
        );
    }
    shows("a\x1b[?7l\x1b[8Gx\x1b[9b", "a      xxx");
    shows("ABC\x1b[2G\x1b[4hX\x1b[11b", "AXXXXXXXXX\nXXX");
    shows("漢字\x1b[G\x1b[4h汉\x1b[2b", "汉汉汉漢字");
}

#[test]
fn only_the_character_directly_before_is_repeated() {
    for between in ["\r", "\x07", "\x1b[m", "\x1b7", "\x1b[b"] {
        let once = format!("a{between}\x1b[3b");
        let expected = if between == "\x1b[b" { "aa" } else { "a" };
        shows(once, expected);
    }
    shows("\x1b[3b", "");
}
