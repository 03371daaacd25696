use proptest::prelude::*;

use super::{MAX_OSC, TerminalFilter};

fn pass(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    TerminalFilter::default().pass(bytes.as_ref()).into_owned()
}

#[track_caller]
fn assert_unchanged(bytes: &str) {
    assert_eq!(
        pass(bytes).escape_ascii().to_string(),
        bytes.as_bytes().escape_ascii().to_string()
    );
}

/// Asserts that nothing of `bytes` passes, and that the text around it does.
#[track_caller]
fn assert_left_out(bytes: &[u8]) {
    let around = [b"before ", bytes, b" behind"].concat();
    let passed = pass(&around).escape_ascii().to_string();
    assert_eq!(passed, "before  behind", "{}", bytes.escape_ascii());
}

#[test]
fn what_draws_passes_unchanged() {
    for drawing in [
        "",
        "plain text\r\n\tschön 日本語 👩‍👩‍👧 e\u{301}\x08\x07",
        "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mtrue\x1b[38:5:200m\x1b[4:3m",
        "\x1b[2J\x1b[3J\x1b[H\x1b[10;20H\x1b[5A\x1b[K\x1b[2L\x1b[P\x1b[4@\x1b[3X\x1b[7b",
        "\x1b[?1049h\x1b[?1h\x1b=\x1b[1;24r\x1b[?25l\x1b[?2004h\x1b[?1002;1006h\x1b[4h",
        "\x1b7\x1b[?12;25h\x1b8\x1bM\x1bD\x1b(0lqk\x1b(B\x0ex\x0f\x1b#8\x1b[2 q\x1b[!p\x1bc",
        "\x1b]11;rgb:00/11/22\x1b\\\x1b]4;1;#ff0000\x1b\\\x1b]104\x1b\\",
        "\x1b]8;id=1;https://example.org/?a=b\x1b\\link\x1b]8;;\x1b\\",
    ] {
        assert_unchanged(drawing);
    }
}

#[test]
fn what_a_terminal_would_answer_is_left_out() {
    for question in [
        "\x05",
        "\x1bZ",
        "\x1b[c",
        "\x1b[0c",
        "\x1b[>c",
        "\x1b[>0c",
        "\x1b[=c",
        "\x1b[5n",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[?15n",
        "\x1b[?2026$p",
        "\x1b[4$p",
        "\x1b[1$w",
        "\x1b[1;1;1;1;1;1*y",
        "\x1b[x",
        "\x1b[>q",
        "\x1b[?u",
        "\x1b[?4m",
        "\x1b[?1;1;0S",
        "\x1b[14t",
        "\x1b[18t",
        "\x1b[21t",
        "\x1b[1;1;2;2;3T",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b]4;1;?\x07",
        "\x1b]4;1;red;2;?\x1b\\",
        "\x1b]10;?\x07",
        "\x1b]11;?\x1b\\",
        "\x1b]12;?\x07",
        "\x1b]52;c;?\x07",
        // Modes that make a terminal send reports.
        "\x1b[?2048h",
        "\x1b[?2031h",
        "\x1b[?996n",
    ] {
        assert_left_out(question.as_bytes());
    }
}

#[test]
fn what_would_do_more_than_draw_is_left_out() {
    for sequence in [
        // Clipboard, notifications, files, images, fonts, other strings.
        "\x1b]52;c;cm0gLXJmIH4=\x07",
        "\x1b]9;notify\x1b\\",
        "\x1b]777;notify;a;b\x07",
        "\x1b]99;;a\x1b\\",
        "\x1b]1337;File=name=eA==;inline=0:eA==\x07",
        "\x1b]50;fixed\x07",
        "\x1b]46;/etc/passwd\x07",
        "\x1bPq#0;2;0;0;0~\x1b\\",
        "\x1b_Gf=100;AAAA\x1b\\",
        "\x1b^private\x1b\\",
        "\x1bXstring\x1b\\",
        // Window and printer.
        "\x1b[8;100;100t",
        "\x1b[2t",
        "\x1b[3;0;0t",
        "\x1b[22;0t",
        "\x1b[5i",
        "\x1b[?5i",
        "\x1b[?3h",
        // Modes that change what keys send: the detach key would not be
        // recognised.
        "\x1b[>4;2m",
        "\x1b[>1u",
        "\x1b[=5;1u",
        "\x1b[<u",
        "\x1b[?9001h",
        "\x1b[?1034h",
        // Other encodings, in which text could be control characters.
        "\x1b%@",
        "\x1b%G",
        "\x1b F",
        "\u{9b}",
        "\u{90}",
        // Links that open anything but web pages.
        "\x1b]8;;file:///etc/passwd\x1b\\",
        "\x1b]8;;javascript:alert(1)\x1b\\",
        "\x1b]8;;",
        // Unknown sequences.
        "\x1b[?12345h",
        "\x1b[1;2;3~",
        "\x1b]987654;x\x07",
    ] {
        // Terminate those that are not terminated.
        let finished = match sequence.strip_prefix("\x1b]") {
            Some(_) if !sequence.ends_with(['\x07', '\\']) => [sequence, "\x07"].concat(),
            _ => sequence.to_owned(),
        };
        assert_left_out(finished.as_bytes());
    }
    assert_left_out(&[0x00, 0x01, 0x04, 0x11, 0x13, 0x1c, 0x7f]);
}

#[test]
fn of_a_list_of_modes_those_pass_that_may() {
    assert_eq!(pass("\x1b[?1049;2048;25;9001h"), b"\x1b[?1049;25h");
    assert_eq!(pass("\x1b[?1006;;1000l"), b"\x1b[?1006;1000l");
}

#[test]
fn a_title_is_one_line_without_control_characters_and_of_bounded_length() {
    let passed = pass("\x1b]2;a\u{9b}31m\u{202e}b\nc\rd\x07");
    let title = "a\u{fffd}31m\u{fffd}b c\u{fffd}d";
    assert_eq!(
        String::from_utf8(passed).unwrap(),
        format!("\x1b[22;0t\x1b]2;{title}\x1b\\")
    );
    let passed = pass(format!("\x1b]0;{}\x07", "ä".repeat(1000)));
    assert_eq!(String::from_utf8(passed).unwrap().matches('ä').count(), 256);
}

/// An escape character ends the title, so the sequence it begins is filtered
/// too.
#[test]
fn a_title_cannot_hide_a_sequence() {
    assert_eq!(pass("\x1b]2;a\x1b[6nb\x1b\\"), b"b");
    assert_eq!(pass("\x1b]2;a\x1b]52;c;eA==\x07b"), b"b");
    assert_eq!(pass("\x1b]2;a\x18b"), b"b");
}

#[test]
fn control_characters_within_a_sequence_are_judged_like_others() {
    assert_eq!(pass("\x1b[3\x05\n1m"), b"\n\x1b[31m");
    assert_eq!(pass("\x1b[6\x1b[31mn"), b"\x1b[31mn");
    assert_eq!(pass("\x1b[6\x18n"), b"n");
    assert_eq!(pass("\x1b[6ün"), "ün".as_bytes());
}

#[test]
fn what_is_no_utf_8_is_replaced() {
    assert_eq!(pass(b"a\x9b6n"), "a\u{fffd}6n".as_bytes());
    assert_eq!(pass(b"\xe2\x82a\xff"), "\u{fffd}a\u{fffd}".as_bytes());
}

#[test]
fn strings_without_an_end_take_no_memory_and_end_with_the_next_sequence() {
    let mut filter = TerminalFilter::default();
    for beginning in [&b"\x1bP"[..], b"\x1b]2;", b"\x1b]52;c;", b"\x1b["] {
        assert!(filter.pass(beginning).is_empty());
        for _ in 0..100 {
            assert!(filter.pass(&[b'1'; 65536]).is_empty());
        }
        assert!(filter.sequence.capacity() <= 2 * MAX_OSC);
        assert_eq!(&*filter.pass(b"\x1b[31mback"), b"\x1b[31mback");
    }
}

#[test]
fn nothing_is_undone_where_nothing_was_changed() {
    let mut filter = TerminalFilter::default();
    filter.pass(
        b"text\x1b[2J\x1b[?25l\x1b[?25h\x1b[?1049h\x1b[?1049l\x1b=\x1b>\x1b[1mbold\x1b(B\x1b[m",
    );
    assert!(filter.undo().is_empty());
}

#[test]
fn what_was_changed_is_undone_once_and_in_order() {
    let mut filter = TerminalFilter::default();
    filter.pass(b"\x1b[?25l\x1b[?1049h\x1b[?1002;1006;2004h\x1b[2;10r\x1b[1;31m\x1b=\x1b(0");
    filter.pass(b"\x1b[5 q\x1b]2;title\x07\x1b]11;black\x07\x1b[?7l\x1b[4h");
    filter.pass(b"\x1b]8;;http://a/\x07");
    let undo = filter.undo().escape_ascii().to_string();
    let expected: &[u8] = b"\x1b]8;;\x1b\\\x1b[m\x0f\x1b(B\x1b[4l\x1b>\
        \x1b[?7h\x1b[?1002l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[?25h\
        \x1b7\x1b[r\x1b8\x1b[0 q\x1b]111\x1b\\\x1b[23;0t";
    assert_eq!(undo, expected.escape_ascii().to_string());
    assert!(filter.undo().is_empty());
}

#[test]
fn a_terminal_that_was_reset_has_nothing_but_its_title_to_undo() {
    let mut filter = TerminalFilter::default();
    filter.pass(b"\x1b[?1049h\x1b[?1003h\x1b]2;title\x07\x1bc");
    assert_eq!(filter.undo(), b"\x1b[23;0t");
}

/// Generates output from fragments of escape sequences.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            &b"\x1b"[..], b"[", b"]", b"?", b">", b";", b"\x07", b"\x1b\\", b"\x18", b"\x05",
            b"\x1b[", b"\x1b]2;", b"\x1b]8;;http://a", b"\x1bP", b"\xc2", b"\x9b", b"\xe2\x82",
            b"\xac", b"h", b"m", b"n", b"c", b"t", b"6n", b"1049", b"25", b" q", b"$p", b"\n",
        ]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => "[a-z0-9äß€日]{0,6}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Returns whether a text has only complete sequences that draw. Does not use
/// the filter's code.
fn is_harmless(mut text: &str) -> bool {
    while let Some(first) = text.chars().next() {
        let length = match first {
            '\x1b' => match sequence(text) {
                Some(length) => length,
                None => return false,
            },
            '\x07'..='\x0f' => 1,
            _ if first.is_control() => return false,
            _ => first.len_utf8(),
        };
        text = &text[length..];
    }
    true
}

/// Returns the length of a harmless sequence at the start.
fn sequence(text: &str) -> Option<usize> {
    if let Some(osc) = text.strip_prefix("\x1b]") {
        let end = osc.find('\x1b')?;
        let quiet = [
            "0;", "1;", "2;", "8;", "4;", "10;", "11;", "12;", "104", "110", "111", "112",
        ];
        let known = quiet.iter().any(|start| osc.starts_with(start));
        let harmless = known && !osc[..end].contains(char::is_control);
        return (harmless && osc[end..].starts_with("\x1b\\")).then_some(2 + end + 2);
    }
    if let Some(csi) = text.strip_prefix("\x1b[") {
        if csi.starts_with("22;0t") {
            return Some(7);
        }
        let end = csi.find(|character: char| ('@'..='~').contains(&character))?;
        let last = csi[end..].chars().next()?;
        let harmless = !"cntixyzwv{|oNOQRUVWY".contains(last) && !csi.starts_with(['>', '=', '<']);
        return harmless.then_some(2 + end + 1);
    }
    let end = text[1..].find(|character: char| ('0'..='~').contains(&character))?;
    let last = text[1 + end..].chars().next()?;
    "78DEHM=>c01234568AB".contains(last).then_some(1 + end + 1)
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(bytes in hostile(), cuts in prop::collection::vec(0usize..100, 0..20)) {
        let whole = pass(&bytes);
        let mut filter = TerminalFilter::default();
        let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.extend_from_slice(&filter.pass(piece));
            rest = behind;
        }
        pieces.extend_from_slice(&filter.pass(rest));
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn nothing_passes_that_does_more_than_draw(bytes in hostile()) {
        let passed = String::from_utf8(pass(&bytes));
        prop_assert!(passed.as_ref().is_ok_and(|text| is_harmless(text)), "{:?}", passed);
    }

    #[test]
    fn what_has_passed_passes_again(bytes in hostile()) {
        let once = pass(&bytes);
        prop_assert_eq!(pass(&once), once);
    }
}
