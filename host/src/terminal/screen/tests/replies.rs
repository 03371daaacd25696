use super::emulate;

fn answer(printed: &str) -> String {
    String::from_utf8(emulate(80, 24, printed).take_replies()).unwrap()
}

#[test]
fn the_cursor_is_told_where_it_is() {
    assert_eq!(answer("\x1b[6n"), "\x1b[1;1R");
    assert_eq!(answer("ab\r\ncde\x1b[6n"), "\x1b[2;4R");
    assert_eq!(answer("ab\x1b[?6n"), "\x1b[?1;3R");
    assert_eq!(answer("\x1b[5;9r\x1b[?6h\x1b[2;3H\x1b[6n"), "\x1b[2;3R");
}

#[test]
fn programs_hear_what_they_talk_to() {
    assert_eq!(answer("\x1b[5n"), "\x1b[0n");
    assert_eq!(answer("\x1b[c\x1b[0c\x1bZ"), "\x1b[?62;22c".repeat(3));
    assert_eq!(answer("\x1b[>c"), "\x1b[>1;10;0c");
    assert_eq!(answer("\x1b[=c"), "\x1bP!|00000000\x1b\\");
    assert_eq!(answer("\x1b[>q"), "\x1bP>|vmcell\x1b\\");
    assert_eq!(answer("\x1b[18t"), "\x1b[8;24;80t");
    assert_eq!(answer("\x1b]11;?\x07"), "\x1b]11;rgb:1616/1818/1d1d\x07");
    assert_eq!(
        answer("\x1b]10;?\x1b\\"),
        "\x1b]10;rgb:d4d4/d8d8/e0e0\x1b\\"
    );
}

#[test]
fn modes_are_told_and_unknown_ones_are_unknown() {
    assert_eq!(answer("\x1b[?2004$p"), "\x1b[?2004;2$y");
    assert_eq!(answer("\x1b[?2004h\x1b[?2004$p"), "\x1b[?2004;1$y");
    assert_eq!(answer("\x1b[?25$p"), "\x1b[?25;1$y");
    assert_eq!(answer("\x1b[?2026$p"), "\x1b[?2026;0$y");
    assert_eq!(answer("\x1b[4$p"), "\x1b[4;2$y");
}

#[test]
fn what_is_not_supported_is_refused_or_not_answered() {
    assert_eq!(answer("\x1bP+q544e\x1b\\"), "\x1bP0+r\x1b\\");
    assert_eq!(answer("\x1bP$qm\x1b\\"), "\x1bP0$r\x1b\\");
    // A string without its end has no effect.
    assert_eq!(answer("\x1bP+q544e\x18\x1bP$qm\x1b[m\x1b]11;?\x1b[m"), "");
    // Only terminals with the kitty keyboard protocol reply.
    assert_eq!(answer("\x1b[?u"), "");
}

#[test]
fn nothing_that_a_program_printed_is_ever_typed_back() {
    let secret = "rm -rf";
    for question in [
        "\x1b[21t",
        "\x1b[20t",
        "\x05",
        "\x1bP$q\x1b\\",
        "\x1bP+q\x1b\\",
        "\x1b]52;c;?\x07",
        "\x1b]0;?\x07",
        "\x1b]4;0;?\x07",
        "\x1b]12;?\x07",
        "\x1b]50;?\x07",
        "\x1b[>q",
        "\x1b[c",
        "\x1b[0;0;0;0;0;0*y",
    ] {
        let printed = format!(
            "\x1b]0;{secret}\x07\x1b]2;{secret}\x07\x1b]1;{secret}\x07{secret}\x1b[22t{question}\
             \x1bP$q{secret}\x1b\\\x1bP+q{secret}\x1b\\\x1b]10;{secret}\x07\x1b]52;c;{secret}\x07"
        );
        assert!(!answer(&printed).contains("rm"), "{question:?}");
    }
}

#[test]
fn who_asks_and_does_not_read_gets_no_more_than_fits() {
    let mut emulator = emulate(80, 24, "\x1b[6n".repeat(100_000));
    let answers = emulator.take_replies();
    assert!((4000..=4096).contains(&answers.len()));
    assert!(answers.ends_with(b"R"), "the last one is whole");
    assert!(emulator.take_replies().is_empty());
    emulator.feed(b"\x1b[5n");
    assert_eq!(emulator.take_replies(), b"\x1b[0n");
}
