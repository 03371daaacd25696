//! Protected characters and selective erasing, as in xterm 379.

use super::shows;

/// Three characters, three protected ones, and three more.
const TEXT: &str = "ABC\x1b[1\"qDEF\x1b[\"qGHI";

#[test]
fn selective_erasing_spares_what_is_protected() {
    shows(format!("{TEXT}\x1b[?2K"), "   DEF");
    shows(format!("{TEXT}\x1b[4G\x1b[?1K"), "   DEFGHI");
    shows(format!("{TEXT}\x1b[2G\x1b[?K"), "A  DEF");
    shows(format!("{TEXT}\r\nxyz\x1b[?2J"), "   DEF");
    shows(format!("{TEXT}\r\nxyz\x1b[?1J"), "   DEF");
    shows(format!("{TEXT}\r\nxyz\x1b[H\x1b[?J"), "   DEF");
    shows(format!("{TEXT}\x1b[1;2;1;8${{"), "A  DEF  I");
    shows("\x1b[1\"qAB漢\x1b[\"qCD\x1b[?2K", "AB漢");
    shows("\x1b[1\"q漢\x1b[\"qCD\x1b[2G\x1b[?K", "漢");
    shows("ABC\x1b[?2J", "");
}

#[test]
fn other_erasing_spares_nothing() {
    shows(format!("{TEXT}\x1b[2K"), "");
    shows(format!("{TEXT}\x1b[2J"), "");
    shows(format!("{TEXT}\x1b[H\x1b[9X"), "");
    shows(format!("{TEXT}\x1b[1;1;1;9$z"), "");
    shows(format!("{TEXT}\x1b[2K\r\x1b[Kab\x1b[?2K"), "");
}

#[test]
fn protection_moves_and_ends_with_its_characters() {
    shows(format!("{TEXT}\x1b[G\x1b[2@\x1b[?2K"), "     DEF");
    shows("\x1b[1\"qABCDE\x1b[\"q\x1b[2Gx\x1b[?2K", "A CDE");
    shows("\x1b[1\"q\x1b[42;1;1;2;2$x\x1b[\"q\x1b[?2J", "**\n**");
}

#[test]
fn protection_is_saved_with_the_cursor_and_outlasts_styles() {
    shows("\x1b[1\"q\x1b7\x1b[\"qABC\x1b8DEF\x1b[?2K", "DEF");
    shows("\x1b[1\"qAB\x1b[0mCD\x1b[?2K", "ABCD");
}

#[test]
fn a_reset_ends_protection() {
    shows("\x1b[1\"qABC\x1b[!pDEF\x1b[?2K", "");
    shows("\x1b[1\"qABC\x1bcDEF\x1b[?2K", "");
}
