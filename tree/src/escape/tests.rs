use proptest::prelude::*;

use super::*;

/// Describes each character of a text by its token.
fn tokens(text: &str) -> String {
    let mut tokenizer = Tokenizer::default();
    let kind = |kind: SequenceKind| match kind {
        SequenceKind::Csi => 'c',
        SequenceKind::Osc => 'o',
        SequenceKind::Dcs => 'd',
        SequenceKind::Other => 's',
    };
    let described = text.chars().map(|next| match tokenizer.step(next) {
        Token::Text => "T".to_owned(),
        Token::Control => "C".to_owned(),
        Token::Nothing => "-".to_owned(),
        Token::Escape(None) => "E".to_owned(),
        Token::Escape(Some(intermediate)) => format!("E{intermediate}"),
        Token::Start(of) => format!("<{}", kind(of)),
        Token::Part(of) => kind(of).to_string(),
        Token::End(of) => format!("{}>", kind(of)),
    });
    described.collect()
}

#[test]
fn each_character_of_a_sequence_has_its_meaning() {
    for (text, expected) in [
        ("a é\t\x7f", "TTTC-"),
        ("\x1b7\x1b(0x", "-E--E(T"),
        ("\x1b[m\x1b[1;31mx", "-<cc>-<cccccc>T"),
        ("\x1b[?2$px", "-<ccccc>T"),
        ("\x1b]2;a\x07x", "-<ooooo>T"),
        ("\x1b]é\n\x7f\x1b\\x", "-<oooo-o>T"),
        ("\x1bP+q\x1b\\x", "-<ddd-d>T"),
        (
            "\x1bXa\x1b\\\x1b^b\x1b\\\x1b_c\x1b\\x",
            "-<ss-s>-<ss-s>-<ss-s>T",
        ),
        // BEL ends only an OSC.
        ("\x1bPa\x07b\x1b\\x", "-<dddd-d>T"),
        // Control characters take effect within a sequence, but not in a string.
        ("\x1b\n[\r1\x7fmx", "-C<cCc-c>T"),
        // Only a character directly after ESC starts a control sequence.
        ("\x1b([x", "--E(T"),
        // No terminal supports more than one intermediate.
        ("\x1b(%0x", "----T"),
    ] {
        assert_eq!(tokens(text), expected, "{text:?}");
    }
}

#[test]
fn sequences_are_cancelled_and_interrupted() {
    for (text, expected) in [
        ("\x1b\x18x\x1b(\x1ax\x1b[1\x18x", "--T---T-<cc-T"),
        ("\x1b]2;a\x18x\x1bPa\x1b\x1ax", "-<oooo-T-<dd--T"),
        ("\x1b\x1b[1\x1b[mx", "--<cc-<cc>T"),
        // A string that another sequence interrupts does not end.
        ("\x1b]a\x1b[mx\x1b]a\x1b\x1b\\x", "-<oo-<cc>T-<oo--ET"),
        ("\x1b]a\x1b\n\\x", "-<oo-CET"),
        // What is not ASCII is text, except in a string.
        ("\x1béx\x1b(éx\x1b[1éx\x1b]\x1béx", "-TT--TT-<ccTT-<o-TT"),
        ("\u{9b}1m", "TTT"),
    ] {
        assert_eq!(tokens(text), expected, "{text:?}");
    }
}

#[test]
fn bytes_have_the_meaning_of_characters() {
    let text = "ä\x1b[1äm\x1b]ä\x07";
    let (mut bytes, mut characters) = (Tokenizer::default(), Tokenizer::default());
    for character in text.chars() {
        let token = characters.step(character);
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            assert_eq!(bytes.step(byte), token, "{character:?}");
        }
    }
}

proptest! {
    #[test]
    fn parts_of_control_sequences_can_be_skipped(text in "[\x1b\\[\\]0-9;? m\x18\x07Pé\n]{0,40}") {
        let (mut skipping, mut stepping) = (Tokenizer::default(), Tokenizer::default());
        let mut skipped = 0usize;
        for (position, next) in text.char_indices() {
            let token = stepping.step(next);
            if skipped == 0 {
                skipped = skipping.csi_parts(&text.as_bytes()[position..]);
            }
            if skipped > 0 {
                prop_assert_eq!(token, Token::Part(SequenceKind::Csi));
                skipped -= 1;
            } else {
                prop_assert_ne!(token, Token::Part(SequenceKind::Csi));
                prop_assert_eq!(skipping.step(next), token);
            }
        }
    }

    #[test]
    fn any_cuts_decode_to_the_same_text(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            prop::collection::vec(prop::sample::select(&b"a\x80\x9f\xa0\xbf\xc0\xc3\xe2\xed\xf0\xf4\xff"[..]), 0..40),
            "[aé€🦀]{0,12}".prop_map(String::into_bytes),
        ],
        cuts in prop::collection::vec(0..6usize, 0..12),
    ) {
        let mut text = String::new();
        let mut decoder = Utf8Decoder::default();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            decoder.decode(piece, |part| text += part);
            rest = after;
        }
        decoder.decode(rest, |part| text += part);
        if decoder.is_partial() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }
}
