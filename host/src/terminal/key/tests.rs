use std::process::Command;

use proptest::prelude::*;

use super::*;

fn bytes(name: &str, cursor_keys: CursorKeys) -> Vec<u8> {
    let press: KeyPress = name
        .parse()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    press.encode(cursor_keys).unwrap()
}

fn normal(name: &str) -> Vec<u8> {
    bytes(name, CursorKeys::Normal)
}

/// The terminfo entries of the keys: capability, name of the key, and what it
/// sends, with `\E` for escape and `^?` for delete.
const TERMINFO: &[(&str, &str, &str)] = &[
    ("kcuu1", "up", "\\EOA"),
    ("kcud1", "down", "\\EOB"),
    ("kcuf1", "right", "\\EOC"),
    ("kcub1", "left", "\\EOD"),
    ("khome", "home", "\\EOH"),
    ("kend", "end", "\\EOF"),
    ("kpp", "page-up", "\\E[5~"),
    ("knp", "PageDown", "\\E[6~"),
    ("kich1", "insert", "\\E[2~"),
    ("kdch1", "delete", "\\E[3~"),
    ("kcbt", "shift+tab", "\\E[Z"),
    ("kbs", "backspace", "^?"),
    ("kf1", "f1", "\\EOP"),
    ("kf2", "f2", "\\EOQ"),
    ("kf3", "f3", "\\EOR"),
    ("kf4", "f4", "\\EOS"),
    ("kf5", "f5", "\\E[15~"),
    ("kf6", "f6", "\\E[17~"),
    ("kf7", "f7", "\\E[18~"),
    ("kf8", "f8", "\\E[19~"),
    ("kf9", "f9", "\\E[20~"),
    ("kf10", "f10", "\\E[21~"),
    ("kf11", "F11", "\\E[23~"),
    ("kf12", "f12", "\\E[24~"),
    ("kf13", "f13", "\\E[1;2P"),
    ("kf13", "shift+f1", "\\E[1;2P"),
    ("kf24", "f24", "\\E[24;2~"),
    ("kf25", "ctrl+f1", "\\E[1;5P"),
    ("kf37", "ctrl+shift+f1", "\\E[1;6P"),
    ("kf49", "alt+f1", "\\E[1;3P"),
    ("kUP5", "ctrl+up", "\\E[1;5A"),
    ("kLFT3", "alt+left", "\\E[1;3D"),
    ("kHOM2", "shift+home", "\\E[1;2H"),
    ("kDC5", "ctrl+delete", "\\E[3;5~"),
    ("kNXT2", "shift+page-down", "\\E[6;2~"),
];

#[test]
fn keys_send_what_terminfo_says() {
    for (capability, name, expected) in TERMINFO {
        let sent = bytes(name, CursorKeys::Application);
        let sent = String::from_utf8(sent).unwrap();
        let sent = sent.replace('\x1b', "\\E").replace('\x7f', "^?");
        assert_eq!(sent, *expected, "{capability} {name}");
    }
}

/// Compares the table above with the terminfo database, where there is one.
#[test]
fn the_table_is_that_of_the_system() {
    let Ok(output) = Command::new("infocmp")
        .args(["-1", "-x", "xterm-256color"])
        .output()
    else {
        return;
    };
    let entry = String::from_utf8(output.stdout).unwrap();
    for (capability, _, expected) in TERMINFO {
        let start = format!("\t{capability}=");
        // Smaller databases leave out the rarer keys.
        if let Some(line) = entry.lines().find(|line| line.starts_with(&start)) {
            assert_eq!(line, format!("{start}{expected},"));
        }
    }
}

#[test]
fn cursor_keys_are_shorter_where_the_program_did_not_ask_for_its_own() {
    for (name, expected) in [("up", "A"), ("left", "D"), ("home", "H"), ("end", "F")] {
        assert_eq!(normal(name), format!("\x1b[{expected}").into_bytes());
    }
    assert_eq!(normal("ctrl+right"), b"\x1b[1;5C");
    assert_eq!(
        bytes("ctrl+right", CursorKeys::Application),
        b"\x1b[1;5C",
        "modifiers win"
    );
}

#[test]
fn names_are_read_in_every_usual_form() {
    for (name, expected) in [
        ("enter", "\r"),
        ("Return", "\r"),
        ("ctrl+c", "\x03"),
        ("CTRL+C", "\x03"),
        ("Ctrl-C", "\x03"),
        ("^C", "\x03"),
        ("control+d", "\x04"),
        ("ctrl+[", "\x1b"),
        ("ctrl+\\", "\x1c"),
        ("ctrl+]", "\x1d"),
        ("ctrl+^", "\x1e"),
        ("ctrl+_", "\x1f"),
        ("ctrl+?", "\x7f"),
        ("ctrl+@", "\0"),
        ("ctrl+space", "\0"),
        ("esc", "\x1b"),
        ("alt+x", "\x1bx"),
        ("meta+X", "\x1bX"),
        ("ctrl+alt+c", "\x1b\x03"),
        ("alt+enter", "\x1b\r"),
        ("alt+backspace", "\x1b\x7f"),
        ("ctrl+backspace", "\x08"),
        ("back-tab", "\x1b[Z"),
        ("page_up", "\x1b[5~"),
        ("PgDn", "\x1b[6~"),
        ("space", " "),
        (" ", " "),
        ("shift+a", "A"),
        ("shift+ä", "Ä"),
        ("a", "a"),
        ("A", "A"),
        ("f", "f"),
        ("+", "+"),
        ("-", "-"),
        ("^", "^"),
        ("alt++", "\x1b+"),
        ("alt+-", "\x1b-"),
        ("alt--", "\x1b-"),
        ("日", "日"),
    ] {
        assert_eq!(normal(name), expected.as_bytes(), "{name}");
    }
}

#[test]
fn what_is_no_key_is_told_with_what_is_possible() {
    for (name, said) in [
        ("", "a single character, enter, tab"),
        ("hyper+a", "no key \"hyper+a\""),
        ("ctrl+", "no key \"ctrl+\""),
        ("enterr", "no key"),
        ("\x1b", "no key \"\\u{1b}\""),
        ("f0", "f1 to f24"),
        ("f25", "f1 to f24"),
        ("f999", "no key \"f999\""),
        ("ctrl+é", "no code for ctrl+é"),
        ("ctrl+1", "no code for ctrl+1"),
        ("shift+1", "name the character"),
        ("shift+ß", "name the character"),
    ] {
        let error = name.parse::<KeyPress>().unwrap_err().to_string();
        assert!(error.contains(said), "{name:?}: {error}");
    }
    let long = "x".repeat(1 << 20).parse::<KeyPress>().unwrap_err();
    assert!(long.to_string().len() < 400, "{long}");
}

#[test]
fn every_control_code_can_be_sent() {
    let mut codes: Vec<u8> = ('\0'..='\x7f')
        .filter_map(|character| KeyPress::control(character).encode(CursorKeys::Normal).ok())
        .flatten()
        .collect();
    codes.sort_unstable();
    codes.dedup();
    let expected: Vec<u8> = (0..=0x1f).chain([0x7f]).collect();
    assert_eq!(codes, expected);
}

proptest! {
    #[test]
    fn any_name_is_answered_and_shown_names_are_read_again(name in "\\PC{0,12}") {
        if let Ok(press) = name.parse::<KeyPress>() {
            let again: KeyPress = press.to_string().parse().unwrap();
            prop_assert_eq!(again, press);
        }
    }

    #[test]
    fn every_press_has_a_name(
        key in prop_oneof![
            Just(Key::Enter), Just(Key::Tab), Just(Key::Escape), Just(Key::PageUp),
            Just(Key::Left), (1..=24_u8).prop_map(Key::F), any::<char>().prop_map(Key::Char),
        ],
        shift: bool, alt: bool, control: bool,
    ) {
        let press = KeyPress::new(key, Modifiers { shift, alt, control });
        let control_character = matches!(key, Key::Char(character) if character.is_control());
        if press.encode(CursorKeys::Normal).is_ok() && !control_character {
            prop_assert_eq!(press.to_string().parse::<KeyPress>(), Ok(press));
        }
    }
}
