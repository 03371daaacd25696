use proptest::prelude::*;

use super::*;

fn whole(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut plain = PlainTextFilter::new();
    plain.feed(bytes, &mut text);
    plain.flush(&mut text);
    text
}

#[test]
fn escape_sequences_are_taken_out() {
    for (printed, expected) in [
        ("plain text\r\n", "plain text\n"),
        ("\x1b[1;31mred\x1b[0m text", "red text"),
        (
            "\x1b[38;2;1;2;3mtrue\x1b[38:5:9m colour\x1b[m",
            "true colour",
        ),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]0;a title\x1b\\after", "after"),
        ("\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2;0;0;0~~\x1b\\after", "after"),
        (
            "\x1b_Gf=100;AAAA\x1b\\\x1b^pm\x1b\\\x1bXsos\x07still\x1b\\after",
            "after",
        ),
        ("\x1b(B\x1b)0\x1b#8\x1b=\x1b>\x1b7\x1b8after", "after"),
        ("\u{9b}31mred\u{9d}0;title\u{9c}after", "redafter"),
        ("a\u{85}b\x1bEc", "a\nb\nc"),
        ("\x1b[?2004h$ \x1b[?2004l", "$ "),
        ("\x1b[ q\x1b[2 q\x1b[!p\x1b[>4;1mafter", "after"),
        ("a\x07b\0c\x7fd", "abcd"),
        ("\x1b[31\x18after", "after"),
        ("\x1b]0;broken \x1b[31mafter", "after"),
        ("\x1b\x1b[31mafter", "after"),
        ("a\x1b[3\r\n1mb", "a\nb"),
        ("\x1b]0;broken \x1b\u{80}after", "after"),
        ("tab\tstays", "tab\tstays"),
        ("日本\x1b[1m語", "日本語"),
        ("a\x0bb\x0cc", "a\nb\nc"),
    ] {
        assert_eq!(whole(printed.as_bytes()), expected, "{printed:?}");
    }
}

#[test]
fn a_line_that_is_rewritten_is_told_as_it_looked_in_the_end() {
    for (printed, expected) in [
        (" 10%\r 50%\r100%\r\n", "100%\n"),
        ("Downloading many files\r\x1b[KDone\n", "Done\n"),
        ("Downloading many files\x1b[2K\rDone\n", "Done\n"),
        ("Downloading\r\x1b[1Kx\n", "xownloading\n"),
        ("abc\rX\n", "Xbc\n"),
        ("lls\x08\x08s\x1b[K -l\n", "ls -l\n"),
        ("secre\x08 \x08\x08 \x08t\n", "sect \n"),
        ("> \x1b[1G\x1b[0J> x\x1b[4G\n", "> x\n"),
        // Line editors insert and delete in the middle.
        ("echo b\x08\x1b[1@a\x1b[1@ \x08\r\n", "echo a b\n"),
        ("echo xb\x08\x08\x1b[1Pb\n", "echo b\n"),
        ("abcdef\x1b[4D\x1b[2X\n", "ab  ef\n"),
        ("ab\x1b[3Dcd\x1b[9C!\n", "cd !\n"),
        ("left\x1b[40Cright\n", "left right\n"),
        ("left\x1b[40G\n", "left\n"),
        ("abcdefgh\r\tX\n", "abcdefghX\n"),
        ("done\r\r\n", "done\n"),
        ("\r\r\n", "\n"),
    ] {
        assert_eq!(whole(printed.as_bytes()), expected, "{printed:?}");
    }
}

#[test]
fn words_in_different_places_of_the_screen_are_told_apart() {
    let painted = b"\x1b[H\x1b[2J\x1b[1;1Hfirst\x1b[5;10Hsecond\x1b[3dthird\x1b[Afourth";
    assert_eq!(whole(painted), "first\nsecond\nthird\nfourth");
}

#[test]
fn a_status_line_that_is_painted_between_lines_is_a_line() {
    let painted =
        b"one\r\n\x1b7\x1b[30;1Hprogress: 1%\x1b8two\r\n\x1b[s\x1b[30;1H2%\x1b[uthree\r\n";
    assert_eq!(whole(painted), "one\nprogress: 1%\ntwo\n2%\nthree\n");
}

#[test]
fn a_line_editor_may_break_long_lines_into_rows() {
    // What bash prints for a line that is longer than the terminal is wide: a
    // blank to wrap to the next row, then a carriage return.
    let printed = b"$ echo abc \rdefghijklm \rn\r\n";
    let mut plain = PlainTextFilter::new();
    plain.set_columns(10);
    let mut text = String::new();
    plain.feed(printed, &mut text);
    assert_eq!(text, "$ echo abcdefghijklmn\n");
}

#[test]
fn what_is_told_stays_and_what_rewrites_it_is_a_new_line() {
    let mut plain = PlainTextFilter::new();
    let mut feed = |bytes: &[u8]| {
        let mut text = String::new();
        plain.feed(bytes, &mut text);
        plain.flush(&mut text);
        text
    };
    assert_eq!(feed(b"$ "), "$ ");
    assert_eq!(feed(b"ls\r\n"), "ls\n");
    assert_eq!(feed(b" 10%"), " 10%");
    assert_eq!(feed(b"\r 50%"), "\n 50%");
    assert_eq!(feed(b"\r\n"), "\n");
    assert_eq!(feed(b"\x1b[3"), "");
    assert_eq!(feed(b"1mred"), "red");
    assert_eq!(feed(b"\x1b[4G\x08!"), "!");
    assert_eq!(feed(b"\x1b[2;1Hx"), "\nx");
}

#[test]
fn characters_may_be_cut_and_what_is_none_is_replaced() {
    let mut plain = PlainTextFilter::new();
    let mut text = String::new();
    for byte in "é€😀".as_bytes().iter().chain(b"\xff\xc3(\xf0\x9f\n") {
        plain.feed(&[*byte], &mut text);
    }
    assert_eq!(text, "é€😀\u{fffd}\u{fffd}(\u{fffd}\n");
}

#[test]
fn endless_strings_and_lines_take_no_memory() {
    let mut plain = PlainTextFilter::new();
    let mut text = String::new();
    plain.feed(b"\x1b]0;", &mut text);
    for _ in 0..1000 {
        plain.feed(&[b'x'; 1000], &mut text);
    }
    assert!(text.is_empty());
    plain.feed(b"\x07", &mut text);
    for _ in 0..1000 {
        plain.feed(&[b'y'; 1000], &mut text);
    }
    assert_eq!(text, "y".repeat(text.len()));
    assert!(text.len() > 1_000_000 - 5000, "{}", text.len());
}

#[test]
fn a_short_sequence_makes_no_long_text() {
    for printed in [
        "\x1b[65535C",
        "\x1b[65535Cx",
        "\x1b[65535@x",
        "\x1b[65535G.",
        "\x1b[99999999b",
    ] {
        let text = whole(printed.repeat(1000).as_bytes());
        assert!(text.len() <= 3 * 1000, "{printed:?}: {}", text.len());
    }
}

/// Output with more escape sequences than random bytes have.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<Vec<u8>>(),
        "[ -~]{0,8}".prop_map(String::into_bytes),
        "\\PC{0,3}".prop_map(String::into_bytes),
        "\x1b\\[[0-9;?]{0,4}[@-~]".prop_map(String::into_bytes),
        "\x1b[\\]P_^X][a-z]{0,4}(\x07|\x1b\\\\)".prop_map(String::into_bytes),
        "[\r\n\t\x08\x1b\u{80}-\u{9f}]{0,4}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_control_characters_are_left(output in output(), columns in 1..20_u16) {
        let mut text = String::new();
        let mut plain = PlainTextFilter::new();
        plain.set_columns(columns);
        plain.feed(&output, &mut text);
        plain.flush(&mut text);
        let control = |character: char| character.is_control() && !"\n\t".contains(character);
        prop_assert!(!text.contains(control), "{:?}", text);
    }

    #[test]
    fn any_cuts_give_the_same(output in output(), cuts in prop::collection::vec(0..64_usize, 0..6)) {
        let mut text = String::new();
        let mut plain = PlainTextFilter::new();
        let mut rest = &output[..];
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            plain.feed(now, &mut text);
            rest = later;
        }
        plain.feed(rest, &mut text);
        plain.flush(&mut text);
        prop_assert_eq!(text, whole(&output));
    }
}
