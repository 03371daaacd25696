//! Character sets, as xterm 379 maps them.

use super::shows;

#[test]
fn the_blank_of_the_line_drawing_set_is_blank() {
    shows("\x1b(0a_a\x1b(B_", "▒ ▒_");
}

#[test]
fn the_british_set_has_pounds() {
    shows("\x1b(A#a\x1b(B#", "£a#");
    shows("\x1b)A\x0e#\x0f#", "£#");
}

#[test]
fn a_single_shift_is_for_one_character() {
    shows("\x1b*0a\x1bNqq", "a─q");
    shows("\x1b+0a\x1bOqq", "a─q");
    shows("\x1b*A\x1bN\r\n##", "\n£#");
    shows("\x1b*0\x1bNq\x1b[2b", "─qq");
}

#[test]
fn each_of_the_four_sets_can_be_in_use() {
    shows("\x1b*0\x1bnqq\x0fq", "──q");
    shows("\x1b+0\x1boqq\x0eq", "──q");
    shows("\x1b(0\x1b7\x1b(Bq\x1b8q", "─");
}
