use proptest::prelude::*;

use super::*;

/// Returns the whole output for these pieces.
fn sanitized<'a>(colours: ColourPolicy, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut sanitizer = Sanitizer::new(colours);
    let mut printed = String::new();
    for piece in pieces {
        printed += &sanitizer.feed(piece);
    }
    printed + &sanitizer.finish()
}

fn kept(bytes: &[u8]) -> String {
    sanitized(ColourPolicy::Keep, [bytes])
}

#[test]
fn lone_8_bit_controls_are_replaced() {
    for byte in 0x80..=0x9f {
        assert_eq!(printable(&[b'a', byte, b'b']), "a\u{fffd}b", "{byte:#x}");
        let as_character = char::from(byte).to_string();
        assert_eq!(printable(as_character.as_bytes()), "\u{fffd}", "{byte:#x}");
    }
}

#[test]
fn text_of_all_languages_passes_and_is_not_copied() {
    for text in [
        "",
        "plain\n\ttext",
        "schön €",
        "日本語",
        "👩‍👩‍👧",
        "نص",
        "क्‍ष",
        "e\u{301}",
    ] {
        assert!(matches!(printable(text.as_bytes()), Cow::Borrowed(same) if same == text));
        let mut sanitizer = Sanitizer::new(ColourPolicy::Keep);
        assert!(matches!(sanitizer.feed(text.as_bytes()), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn characters_that_reorder_or_hide_others_are_replaced() {
    for hidden in "\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}\u{2028}\u{2029}\u{feff}\
                   \u{200b}\u{e0041}\u{85}\u{7f}"
        .chars()
    {
        let text = format!("a{hidden}b");
        assert_eq!(printable(text.as_bytes()), "a\u{fffd}b", "{hidden:?}");
    }
}

#[test]
fn whole_colour_sequences_pass_and_are_ended() {
    let coloured = "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mtrue\x1b[m\n";
    assert_eq!(kept(coloured.as_bytes()), coloured);
    assert_eq!(kept(b"\x1b[31mred"), "\x1b[31mred\x1b[0m");
    assert_eq!(
        sanitized(ColourPolicy::Remove, [coloured.as_bytes()]),
        "red true\n"
    );
    assert_eq!(
        sanitized(ColourPolicy::Replace, [&b"\x1b[31mred"[..]]),
        "\u{fffd}[31mred"
    );
}

#[test]
fn what_is_not_quite_a_colour_is_replaced() {
    for (bytes, expected) in [
        (&b"\x1b[2J"[..], "\u{fffd}[2J"),
        (b"\x1b[?4m", "\u{fffd}[?4m"),
        (b"\x1b[>4;2m", "\u{fffd}[>4;2m"),
        (b"\x1b[31 m", "\u{fffd}[31 m"),
        (b"\x1b[3\x1b[31mx\x1b[m", "\u{fffd}[3\x1b[31mx\x1b[m"),
        (b"\x1b[3\n1m", "\u{fffd}[3\n1m"),
        (b"\x1b[3\x9bm", "\u{fffd}[3\u{fffd}m"),
        (b"\x9b31m", "\u{fffd}31m"),
        ("\u{9b}31m".as_bytes(), "\u{fffd}31m"),
        (b"\x1b]0;title\x07", "\u{fffd}]0;title\u{fffd}"),
        (b"\x1b\x1b[1", "\u{fffd}\u{fffd}[1"),
        (b"\r\n\r\r\n\r", "\n\u{fffd}\n\u{fffd}"),
    ] {
        assert_eq!(kept(bytes), expected, "{}", bytes.escape_ascii());
    }
    let long = |digits: usize| format!("\x1b[{}m", "1".repeat(digits));
    assert_eq!(kept(long(63).as_bytes()), long(63) + "\x1b[0m");
    assert!(kept(long(64).as_bytes()).starts_with('\u{fffd}'));
}

#[test]
fn little_is_held_back() {
    let mut sanitizer = Sanitizer::new(ColourPolicy::Keep);
    let mut printed = sanitizer.feed(b"\x1b[").len();
    for count in 1..1000_usize {
        printed += sanitizer.feed(b"1").len();
        assert!((2 + count).saturating_sub(printed) <= 66, "{count}");
    }
}

/// Generates hostile output from fragments of escape sequences and UTF-8.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            &b"\x1b"[..], b"[", b"\x1b[", b"0", b"31", b";", b":", b"m", b"\x1b[31m", b"\x1b[0m",
            b"\r", b"\n", b"\t", b"\x9b", b"\xc2", b"\xc2\x9b", b"\xe2\x80", b"\xae", b"\xe2",
            b"\xf0\x9f", b"\xed\xa0\x80", b"\x7f", b"?", b"\xef\xbb\xbf", b"\x07",
        ]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => "[a-z0-9äß€日]{0,6}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn policy() -> impl Strategy<Value = ColourPolicy> {
    prop::sample::select(vec![
        ColourPolicy::Keep,
        ColourPolicy::Remove,
        ColourPolicy::Replace,
    ])
}

/// Splits bytes into pieces of these lengths, and the rest.
fn cut<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths {
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

/// Removes complete colour sequences, with code independent of the sanitizer.
fn without_colours(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = rest.find("\x1b[") {
        let (before, sequence) = rest.split_at(at);
        out += before;
        let behind =
            sequence[2..].trim_start_matches(|c: char| c.is_ascii_digit() || ";:".contains(c));
        rest = match behind.strip_prefix('m') {
            Some(behind) => behind,
            None => {
                out.push('\x1b');
                &sequence[1..]
            }
        };
    }
    out + rest
}

proptest! {
    #[test]
    fn nothing_but_newline_tab_and_whole_colours_controls_a_terminal(
        bytes in hostile(),
        lengths in prop::collection::vec(0usize..8, 0..40),
        colours in policy(),
    ) {
        let printed = sanitized(colours, cut(&bytes, &lengths));
        let text = match colours {
            ColourPolicy::Keep => without_colours(&printed),
            _ => printed,
        };
        let forbidden = |character: char| {
            let is_c1_or_c0 = character.is_control() && !"\n\t".contains(character);
            is_c1_or_c0 || "\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
                \u{2066}\u{2067}\u{2068}\u{2069}".contains(character)
        };
        prop_assert!(!text.contains(forbidden), "{:?}", text);
    }

    #[test]
    fn any_cuts_give_what_the_whole_gives(
        bytes in hostile(),
        lengths in prop::collection::vec(0usize..8, 0..40),
        colours in policy(),
    ) {
        prop_assert_eq!(sanitized(colours, cut(&bytes, &lengths)), sanitized(colours, [&bytes[..]]));
    }

    #[test]
    fn what_was_made_safe_stays_as_it_is(bytes in hostile(), colours in policy()) {
        let once = sanitized(colours, [&bytes[..]]);
        prop_assert_eq!(sanitized(colours, [once.as_bytes()]), once);
    }

    #[test]
    fn what_is_safe_passes_whole(text in "[ -~äß€日\n\t]{0,80}") {
        prop_assert_eq!(printable(text.as_bytes()), &*text);
        prop_assert_eq!(kept(text.as_bytes()), text);
    }

    #[test]
    fn a_name_stays_in_its_line(bytes in hostile()) {
        let name = printable_name(&bytes);
        prop_assert!(!name.contains(char::is_control), "{:?}", name);
    }
}
