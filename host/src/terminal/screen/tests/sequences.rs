//! Control sequences one by one. Where no comment says otherwise, tmux 3.3 shows
//! the same.

use super::{screen, shows};
use crate::terminal::screen::{Colour, Style};

#[test]
fn text_wraps_behind_the_last_column_and_not_before_it_must() {
    shows("0123456789", "0123456789");
    shows("0123456789a", "0123456789\na");
    shows("0123456789\r\nb", "0123456789\nb");
    shows("0123456789\x1b[A\x1b[2Cy", "012345678y");
    shows("\x1b[?7l0123456789abc", "012345678c");
    // As xterm does; tmux stays in the last column.
    shows("0123456789\x08y", "01234567y9");
}

#[test]
fn cursors_move_and_stay_on_the_screen() {
    shows("\x1b[2;3Hx\x1b[Ay\x1b[2Dz", "  zy\n  x");
    shows(
        "\x1b[99;99Hx\x1b[99D\x1b[99Ay\x1b[0;0Hz",
        "z\n\n\n\n         x",
    );
    shows("\x1b[3;3Ha\x1b[2Eb\x1b[Fc", "\n\n  a\nc\nb");
    shows("\x1b[4Ga\x1b[2db", "   a\n    b");
    // tmux does not support these two.
    shows("a\x1b[2ab\x1b[2ec", "a  b\n\n    c");
}

#[test]
fn tabs_stop_where_they_are_set() {
    shows("a\tb\tc", "a       bc");
    shows("\x1b[3g\x1b[4G\x1bH\x1b[7G\x1bH\ra\tb\tc", "a  b  c");
    shows("\x1b[10G\x1b[Zx", "        x");
    // tmux does not support CHT.
    shows("\x1b[4G\x1bH\x1b[10G\x1b[2Zx\x1b[Iy", "   x    y");
}

#[test]
fn what_is_erased_is_blank() {
    let text = "abcdefghij\r\n0123456789\r\nABCDEFGHIJ\x1b[2;5H";
    shows(format!("{text}\x1b[J"), "abcdefghij\n0123");
    shows(format!("{text}\x1b[1J"), "\n     56789\nABCDEFGHIJ");
    shows(format!("{text}\x1b[2J"), "");
    shows(format!("{text}\x1b[K"), "abcdefghij\n0123\nABCDEFGHIJ");
    shows(
        format!("{text}\x1b[1K"),
        "abcdefghij\n     56789\nABCDEFGHIJ",
    );
    shows(format!("{text}\x1b[2K"), "abcdefghij\n\nABCDEFGHIJ");
    shows(
        format!("{text}\x1b[3X"),
        "abcdefghij\n0123   789\nABCDEFGHIJ",
    );
    shows(format!("{text}\x1b[3P"), "abcdefghij\n0123789\nABCDEFGHIJ");
    shows(
        format!("{text}\x1b[3@"),
        "abcdefghij\n0123   456\nABCDEFGHIJ",
    );
}

#[test]
fn rows_move_within_the_region_that_scrolls() {
    let text = "1\r\n2\r\n3\r\n4\r\n5";
    shows(format!("{text}\x1b[2;1H\x1b[2L"), "1\n\n\n2\n3");
    shows(format!("{text}\x1b[2;1H\x1b[2M"), "1\n4\n5");
    shows(format!("{text}\x1b[2S\x1b[T"), "\n3\n4\n5");
    shows(format!("{text}\x1b[2;4r\x1b[4;1H\nx"), "1\n3\n4\nx\n5");
    shows(format!("{text}\x1b[2;4r\x1b[2;1H\x1bMx"), "1\nx\n2\n3\n5");
    shows(format!("{text}\x1b[2;4r\x1b[5;1Ha\nb"), "1\n2\n3\n4\nab");
    shows(
        format!("{text}\x1b[2;4r\x1b[?6h\x1b[99;1Hx\x1b[Hy"),
        "1\ny\n3\nx\n5",
    );
    shows(format!("{text}\x1b[4;2r\x1b[5;1H\nx"), "2\n3\n4\n5\nx");
}

#[test]
fn old_ways_to_say_it_work_too() {
    shows("one\x1bDtwo\x1bEx", "one\n   two\nx");
    shows("a\x0bb\x0cc", "a\n b\n  c");
    shows("abcdef\x1b[3G\x1b[4hXY\x1b[4lZ", "abXYZdef");
    shows("ab\x1b[5bc", "abbbbbbc");
    shows("ab\x1b7\x1b[3;3Hx\x1b8cd", "abcd\n\n  x");
    shows("ab\x1b[s\x1b[3;3Hx\x1b[ucd", "abcd\n\n  x");
    shows("abc\x1b[3;3Hdef\x1bcnew", "new");
    shows("a\x00b\x07c\x7fd", "abcd");
    // As the VT220 does; tmux supports neither of the two.
    shows("\x1b[20hab\ncd", "ab\ncd");
    shows("\x1b[2;4r\x1b[4h\x1b[2;2H\x1b[!pab\x1b[2Gx", "\n xb");
}

#[test]
fn boxes_of_the_vt100_are_boxes() {
    // tmux draws them too, but captures them as letters.
    shows("\x1b(0lqk\x1b(B lqk", "┌─┐ lqk");
    shows("\x1b)0a\x0eqx\x0fq", "a─│q");
}

#[test]
fn each_screen_keeps_what_is_on_it() {
    shows("main\x1b[?1049hother", "    other");
    shows("main\x1b[?1049hother\x1b[?1049l back", "main back");
    // The cursor stays where it is.
    shows("main\x1b[?47h12\x1b[?47l!", "main  !");
}

#[test]
fn wide_characters_take_two_columns_and_are_never_cut_in_half() {
    shows("12345678漢x", "12345678漢\nx");
    shows("123456789漢x", "123456789\n漢x");
    shows("漢字漢字漢字", "漢字漢字漢\n字");
    // xterm blanks the other half too; tmux does not.
    shows("漢字漢字\x1b[2Ga\x1b[7Gb", " a字漢b");
    shows("漢字漢字\x1b[2G\x1b[4X", "      字");
    shows("a漢b字c\x1b[3G\x1b[P", "a b字c");
    shows("a漢b字c\x1b[G\x1b[2P", " b字c");
    shows("a漢b字c\x1b[3G\x1b[@", "a   b字c");
    shows("12345678漢\x1b[G\x1b[@", " 12345678");
    shows("漢字漢字\x1b[2G漢", " 漢 漢字");
    assert_eq!(screen(1, 2, "a漢b").text(), "a\nb");
}

#[test]
fn marks_belong_to_the_character_before_them() {
    shows("e\u{301}x\u{301}\u{302}y", "e\u{301}x\u{301}\u{302}y");
    shows("0123456789\u{301}\r\nq", "0123456789\u{301}\nq");
    shows("漢\u{301}x", "漢\u{301}x");
    shows("\u{301}x", "x");
}

#[test]
fn characters_that_hide_or_reorder_others_are_left_out() {
    // tmux keeps most of them.
    shows("a\u{202e}b\u{200b}c\u{feff}d\u{e0041}e\u{2028}f", "abcdef");
}

#[test]
fn what_is_not_utf8_is_replaced() {
    // tmux leaves it out.
    shows(b"a\xffb\xc3(c\xe2\x82d", "a\u{fffd}b\u{fffd}(c\u{fffd}d");
    shows(b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}");
    shows(b"\xf0\x9f\x1b[2Gx", "\u{fffd}x");
}

#[test]
fn sequences_can_be_broken_off_and_strings_end() {
    shows("a\x1b[3\x18b\x1b[3\x1ac\x1b]0;t\x18d", "abcd");
    shows("a\x1b]0;t\x1b[31mb", "ab");
    shows("ab\x1b[\r3Gc\x1b[2\nGd", "abc\n d");
    shows(
        "a\x1bPq#0~~\x1b\\b\x1b_Gx\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e",
        "abcde",
    );
    shows(format!("a\x1b[{}mb", "1;".repeat(40)), "ab");
    shows("\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\!", "link!");
    shows("\x1b[>4;2m\x1b[?1;1;0Sa\x1b[=1ub\x1b[<1uc\x1b[ qd", "abcd");
}

#[test]
fn what_is_not_ascii_ends_a_sequence_and_is_text() {
    // xterm ends the sequence too; tmux ignores the bytes within it.
    shows("a\x1bé\x1b(éb\x1b[3éc", "aéébéc");
    shows(b"\x1b[3\xffm", "\u{fffd}m");
    shows("\x1bPé\x1b\\a\x1b]0;é\x07b", "ab");
}

#[test]
fn titles_are_set_put_aside_and_taken_back_and_cannot_do_harm() {
    let title = |printed: &str| screen(10, 5, printed).title;
    assert_eq!(title("\x1b]0;one;two\x07"), "one;two");
    assert_eq!(title("\x1b]2;a\x1b\\"), "a");
    // As in xterm, a string without its end has no effect; in tmux it has.
    assert_eq!(title("\x1b]2;a\x1b[m\x1b]2;b\x18"), "");
    assert_eq!(title("\x1b]0;a\x07\x1b[22;0t\x1b]0;b\x07\x1b[23;0t"), "a");
    assert_eq!(title("\x1b]0;a\u{202e}b\u{9b}c\nd\x07"), "abcd");
    assert_eq!(
        title(&format!("\x1b]0;{}\x07", "é".repeat(2000)))
            .chars()
            .count(),
        256
    );
}

#[test]
fn styles_and_colours_are_what_the_program_said() {
    let style = |printed: &str| screen(10, 5, format!("{printed}x")).spans(0)[0].style;
    assert_eq!(style("\x1b[1;3;4m").foreground, Colour::Default);
    assert_eq!(
        style("\x1b[1;2;3;4;7;8;9;31;42m"),
        Style {
            foreground: Colour::Palette(1),
            background: Colour::Palette(2),
            bold: true,
            dim: true,
            italic: true,
            underline: true,
            reverse: true,
            hidden: true,
            struck: true,
        }
    );
    let undone = "\x1b[22;23;24;27;28;29;39;49m";
    assert_eq!(
        style(&format!("\x1b[1;2;3;4;7;8;9;31;42m{undone}")),
        Style::default()
    );
    assert_eq!(style("\x1b[91m").foreground, Colour::Palette(9));
    assert_eq!(style("\x1b[38;5;208m").foreground, Colour::Palette(208));
    assert_eq!(style("\x1b[48;2;1;2;3m").background, Colour::Rgb(1, 2, 3));
    assert_eq!(style("\x1b[38:2::1:2:3m").foreground, Colour::Rgb(1, 2, 3));
    assert_eq!(style("\x1b[38:2:1:2:3m").foreground, Colour::Rgb(1, 2, 3));
    assert_eq!(style("\x1b[58;2;1;2;3;32m").foreground, Colour::Palette(2));
    assert_eq!(style("\x1b[38;2;300;2;3;4m").foreground, Colour::Default);
    assert!(!style("\x1b[4:3m\x1b[4:0m").underline);
}

#[test]
fn blanks_have_the_colour_they_were_erased_with() {
    let screen = screen(10, 5, "ab\x1b[41m\x1b[K\x1b[0m\r\n\x1b[42m c");
    let spans = screen.spans(0);
    assert_eq!(spans.len(), 2);
    assert_eq!((spans[1].column, spans[1].columns), (2, 8));
    assert_eq!(spans[1].style.background, Colour::Palette(1));
    assert_eq!(screen.spans(1)[0].text, " c");
    assert_eq!(screen.spans(7), []);
}
