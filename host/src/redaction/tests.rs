use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use vmcell_tree::escape::{Token, Tokenizer};

use super::{redactor::MAX_HELD, *};

fn redactor(secrets: &[&str]) -> Redactor {
    let secrets = secrets.iter().map(|secret| secret.as_bytes());
    let secrets = Arc::new(SecretSet::new([], secrets));
    Redactor::new(secrets, 0, Thoroughness::Thorough)
}

/// The pause between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Short,
    /// Longer than bytes are held back.
    Long,
}

/// Returns what is stored after these pieces.
fn kept(redactor: &mut Redactor, pieces: &[&str], pause: Pause) -> String {
    let mut kept = Vec::new();
    for piece in pieces {
        let output = redactor.feed(Bytes::copy_from_slice(piece.as_bytes()));
        keep(&mut kept, &output);
        if pause == Pause::Long {
            keep(&mut kept, &redactor.release());
        }
    }
    keep(&mut kept, &redactor.release());
    String::from_utf8(kept).unwrap()
}

fn keep(kept: &mut Vec<u8>, output: &Redacted) {
    assert_eq!(output.offset, kept.len() as u64, "offsets are true");
    for range in &output.late_masks {
        assert!(range.start < range.end && range.end <= output.offset);
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        kept[range].fill(MASK);
    }
    kept.extend_from_slice(&output.bytes);
}

#[test]
fn a_secret_is_hidden_wherever_it_is_cut_and_however_slowly_it_comes() {
    let text = "Password: hunter2\r\nhunter2hunter2 hunter";
    for pause in [Pause::Short, Pause::Long] {
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            assert_eq!(
                kept(&mut redactor(&["hunter2"]), &[first, second], pause),
                "Password: *******\r\n************** hunter",
                "cut at {cut}"
            );
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(
            kept(&mut redactor(&["hunter2"]), &letters, pause),
            "Password: *******\r\n************** hunter",
        );
    }
}

#[test]
fn controls_between_its_letters_do_not_hide_a_secret() {
    for (text, expected) in [
        ("h\r\nu\r\nnter2", "*\r\n*\r\n*****"),
        ("hun\x1b[0m\x1b[1;31mter2", "***\x1b[0m\x1b[1;31m****"),
        ("h\x08hu\x07nter2", "h\x08**\x07*****"),
        ("hunt\x1b]0;title\x07er2", "****\x1b]0;title\x07***"),
        ("hunt\x1b]0;hunter2\x1b\\er2", "****\x1b]0;*******\x1b\\***"),
        ("hunt\x1b(Ber2", "****\x1b(B***"),
        // Neither starts a control sequence, nor ends a string.
        ("hunt\x1b([er2", "****\x1b([***"),
        (
            "hunt\x1bP\x07hunter\x1b\\er2",
            "****\x1bP\x07hunter\x1b\\***",
        ),
        // Letters of a sequence are not text.
        ("\x1b[1hunter2", "\x1b[1*******"),
        ("\x1b[hunter", "\x1b[hunter"),
        // Visible text between the letters prevents a match.
        ("hun.ter2", "hun.ter2"),
    ] {
        for pause in [Pause::Short, Pause::Long] {
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            for pieces in [&[text][..], &letters] {
                let mut redactor = redactor(&["hunter2"]);
                assert_eq!(kept(&mut redactor, pieces, pause), expected, "{pieces:?}");
            }
        }
    }
}

#[test]
fn only_the_possible_beginning_of_a_secret_is_held_back() {
    let mut redactor = redactor(&["hunter2"]);
    assert_eq!(redactor.feed(Bytes::from("the hunt")).bytes, "the ");
    assert!(redactor.holds_back());
    assert_eq!(redactor.feed(Bytes::from("ing h")).bytes, "hunting ");
    assert_eq!(redactor.release().bytes, "h");
    assert!(!redactor.holds_back());
    assert_eq!(redactor.release().bytes, "");
}

#[test]
fn what_is_complete_is_not_held_back() {
    let mut redactor = redactor(&["hunter2", "abcabc"]);
    assert_eq!(redactor.feed(Bytes::from("hunter2")).bytes, "*******");
    // Its end may be the beginning of another match.
    assert_eq!(redactor.feed(Bytes::from("abcabc")).bytes, "***");
    assert_eq!(redactor.feed(Bytes::from("abc")).bytes, "***");
    assert_eq!(redactor.feed(Bytes::from("!")).bytes, "***!");
}

#[test]
fn controls_without_end_are_not_held_back_without_end() {
    let mut redactor = redactor(&["hunter2"]);
    redactor.feed(Bytes::from("hunter"));
    let mut kept = 0;
    for _ in 0..100 {
        kept += redactor
            .feed(Bytes::from_static(&[b'\r'; 4096]))
            .bytes
            .len();
        assert!(redactor.held.len() <= MAX_HELD);
        assert!(redactor.search.visible.len() <= 7);
    }
    assert!(kept > 300_000);
    let late = redactor.feed(Bytes::from("2")).late_masks;
    assert_eq!((late.len(), late.first()), (1, Some(&(0..6))));
}

#[test]
fn bytes_without_secrets_are_not_copied() {
    let bytes = Bytes::from("nothing to see");
    for secrets in [&[][..], &["XYZ-secret"]] {
        let output = redactor(secrets).feed(bytes.clone()).bytes;
        assert_eq!(output.as_ptr(), bytes.as_ptr());
    }
    let cut = redactor(&["see-you"]).feed(bytes.clone()).bytes;
    assert_eq!(cut, "nothing to ");
    assert_eq!(cut.as_ptr(), bytes.as_ptr());
}

#[test]
fn all_of_several_secrets_are_hidden_also_where_they_overlap() {
    let mut redactor = redactor(&["pass", "password1", "word", "sswo"]);
    let pieces = ["a pass", "word1 pa", "ss passwor"];
    let expected = "a ********* **** ******r";
    assert_eq!(kept(&mut redactor, &pieces, Pause::Short), expected);
    assert_eq!(
        kept(
            &mut self::redactor(&["abcd", "cdef"]),
            &["abcd", "ef"],
            Pause::Long
        ),
        "******"
    );
}

#[test]
fn nothing_is_completed_across_missing_bytes() {
    let mut redactor = redactor(&["hunter2"]);
    redactor.feed(Bytes::from("hunt"));
    redactor.release();
    redactor.skip(10);
    let output = redactor.feed(Bytes::from("er2 hunter2"));
    assert_eq!((output.offset, output.late_masks), (14, vec![]));
    assert_eq!(output.bytes, "er2 *******");
}

#[test]
fn a_secret_is_not_shown_for_debugging() {
    let mut redactor = redactor(&["hunter2"]);
    redactor.feed(Bytes::from("hunte"));
    let shown = format!("{redactor:?}");
    assert_eq!(shown, "Redactor { secrets: 1 secrets, .. }");
}

#[test]
fn text_is_searched_for_whole_secrets_or_for_the_rest_of_one() {
    let redactor = redactor(&["hunter2", "pass word", "ab"]);
    let masked = |mode, text: &str| {
        let mut text = text.to_owned();
        redactor.scan(mode).unwrap().mask(&mut text);
        text
    };
    let exact = "hunter2 ******* hunte pass word\npass\nword ab";
    let expected = "******* ******* hunte *********\npass\nword ab";
    assert_eq!(masked(ScanMode::Exact, exact), expected);
    let completed = ScanMode::Completed { lines: 1 };
    assert_eq!(masked(completed, "xhunter*abxa*"), "x*******abx**");
    assert_eq!(masked(completed, "passwo\u{fffd}*"), "********");
}

/// Masks the whole text at once.
fn oracle(text: &str, secrets: &[String]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        for at in 0..text.len() {
            if text[at..].starts_with(secret.as_str()) {
                bytes[at..at + secret.len()].fill(MASK);
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

proptest! {
    #[test]
    fn any_cuts_and_pauses_give_what_masking_the_whole_gives(
        pieces in prop::collection::vec(("[ab]{0,6}", any::<bool>()), 0..12),
        secrets in prop::collection::vec("[ab]{0,6}", 0..5),
    ) {
        let names: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let mut redactor = redactor(&names);
        let (mut all, mut text) = (Vec::new(), String::new());
        for (piece, pause) in &pieces {
            text += piece;
            keep(&mut all, &redactor.feed(Bytes::copy_from_slice(piece.as_bytes())));
            if *pause {
                keep(&mut all, &redactor.release());
            }
        }
        keep(&mut all, &redactor.release());
        prop_assert_eq!(String::from_utf8(all).unwrap(), oracle(&text, &secrets));
    }

    #[test]
    fn control_sequences_between_letters_change_nothing(
        letters in prop::collection::vec(("[ab]", "(|\r\n|\x1b\\[3[0-9]m|\x1b\\]0;x\x07|\t)"), 0..40),
        secret in "[ab]{4,6}",
        pause in any::<bool>(),
    ) {
        let mut redactor = redactor(&[&secret]);
        let (mut all, mut text) = (Vec::new(), String::new());
        for (letter, control) in &letters {
            text += letter;
            for piece in [letter, control] {
                keep(&mut all, &redactor.feed(Bytes::copy_from_slice(piece.as_bytes())));
                if pause {
                    keep(&mut all, &redactor.release());
                }
            }
        }
        keep(&mut all, &redactor.release());
        let seen: String = {
            let mut tokenizer = Tokenizer::default();
            let seen = all.into_iter().filter(|byte| tokenizer.step(*byte) == Token::Text);
            seen.map(char::from).collect()
        };
        prop_assert_eq!(seen, oracle(&text, &[secret]));
    }
}

/// Returns what a fast redactor shows of pieces. What was shown is not masked later.
fn shown(secrets: &Arc<SecretSet>, pieces: &[&[u8]]) -> Vec<u8> {
    let mut redactor = Redactor::new(secrets.clone(), 0, Thoroughness::Fast);
    let mut shown = Vec::new();
    for piece in pieces {
        let output = redactor.feed(Bytes::copy_from_slice(piece));
        assert_eq!(output.offset, shown.len() as u64, "offsets are true");
        assert!(output.late_masks.is_empty());
        shown.extend_from_slice(&output.bytes);
    }
    shown.extend_from_slice(&redactor.release().bytes);
    shown
}

/// Returns a text in which a value is encoded by a program.
fn encoded_by(kind: usize, before: &str, value: &str, after: &str) -> String {
    let text = format!("{before}{value}{after}");
    let hex = || {
        text.bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    match kind {
        0 => text,
        1 => hex(),
        2 => hex().to_uppercase(),
        _ => serde_json::to_string(&text).unwrap(),
    }
}

proptest! {
    #[test]
    fn a_fast_search_finds_what_a_thorough_one_does(
        secrets in prop::collection::vec("[a-c]{12,40}", 1..5),
        text in prop::collection::vec((any::<u8>(), "[a-d\n]{0,300}"), 0..6),
        cuts in prop::collection::vec(0.0..1.0, 0..6),
    ) {
        let set = Arc::new(SecretSet::new([], secrets.iter().map(String::as_bytes)));
        let mut whole = String::new();
        for (secret, filling) in &text {
            whole += filling;
            whole += &secrets[usize::from(*secret) % secrets.len()];
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|it| (it * whole.len() as f64) as usize).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|it| &whole.as_bytes()[it[0]..it[1]]).collect();
        let output = String::from_utf8(shown(&set, &pieces)).unwrap();
        // Line ends within a secret may be passed over, so more may be masked.
        let expected = oracle(&whole, &secrets);
        prop_assert_eq!(output.len(), expected.len());
        for (at, (seen, expected)) in output.bytes().zip(expected.bytes()).enumerate() {
            prop_assert!(seen == expected || seen == MASK, "at {}: {}", at, output);
        }
    }

    #[test]
    fn no_encoding_of_a_value_is_shown_wherever_it_is_cut(
        value in "[ -~]{12,60}",
        (before, after) in ("[ -~]{0,100}", "[ -~]{0,100}"),
        kind in 0_usize..4,
        size in 1_usize..200,
    ) {
        let set = Arc::new(SecretSet::new([value.as_bytes()], []));
        let text = encoded_by(kind, &before, &value, &after);
        let needle = encoded_by(kind, "", &value, "");
        let needle = needle.trim_matches('"');
        prop_assume!(text.contains(needle));
        let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
        let output = String::from_utf8(shown(&set, &pieces)).unwrap();
        prop_assert_eq!(output.len(), text.len());
        prop_assert!(!output.contains(needle), "{}", output);
        prop_assert!(output.contains(&"*".repeat(needle.len())), "{}", output);
    }
}

#[test]
fn base64_is_masked_at_each_alignment_in_lines_and_letter_by_letter() {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    let value = "correct horse battery staple, and 31 more";
    let set = Arc::new(SecretSet::new([value.as_bytes()], []));
    for before in 0..80 {
        let text = format!("{}{value}{}", "x".repeat(before), "y".repeat(20));
        let encoded = BASE64_STANDARD.encode(&text);
        let lines: Vec<_> = encoded.as_bytes().chunks(76).collect();
        let lines = lines.join(&b'\n');
        for size in [1, 7, 1000] {
            let pieces: Vec<_> = lines.chunks(size).collect();
            let output = shown(&set, &pieces);
            assert_eq!(output.len(), lines.len());
            let masked = output.iter().filter(|byte| **byte == MASK).count();
            // All letters that are of the value only.
            let letters = ((before + value.len()) * 8 / 6) - (before * 8).div_ceil(6);
            assert_eq!(
                masked,
                letters,
                "{before}: {}",
                String::from_utf8_lossy(&output)
            );
        }
    }
}

#[test]
fn a_hundred_thousand_times_is_masked_each_time() {
    let value = "hunter2-hunter2-hunter2";
    let set = Arc::new(SecretSet::new([value.as_bytes()], []));
    let text = format!("{value}.").repeat(100_000);
    let output = shown(&set, &text.as_bytes().chunks(65_521).collect::<Vec<_>>());
    assert_eq!(output.iter().filter(|byte| **byte == b'.').count(), 100_000);
    assert!(output.iter().all(|byte| matches!(byte, b'.' | b'*')));
}
