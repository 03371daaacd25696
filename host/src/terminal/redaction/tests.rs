use proptest::prelude::*;

use super::*;

fn redactor(secrets: &[&str]) -> Redactor {
    let mut redactor = Redactor::new();
    for secret in secrets {
        redactor.hide(secret.as_bytes());
    }
    redactor
}

/// Everything that comes out if these pieces go in.
fn passed(redactor: &mut Redactor, pieces: &[&str]) -> String {
    let mut out = Vec::new();
    for piece in pieces {
        out.extend(redactor.feed(Bytes::copy_from_slice(piece.as_bytes())));
    }
    out.extend(redactor.flush());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_secret_is_hidden_wherever_it_is_cut() {
    let text = "Password: hunter2\r\nhunter2hunter2 hunter";
    for cut in 0..=text.len() {
        let (first, second) = text.split_at(cut);
        assert_eq!(
            passed(&mut redactor(&["hunter2\r\n"]), &[first, second]),
            "Password: ********\r\n**************** hunter",
            "cut at {cut}"
        );
    }
}

#[test]
fn only_the_possible_beginning_of_a_secret_is_held_back() {
    let mut redactor = redactor(&["hunter2"]);
    assert_eq!(redactor.feed(Bytes::from("the hunt")), "the ");
    assert!(redactor.holds_back());
    assert_eq!(redactor.feed(Bytes::from("ing h")), "hunting ");
    assert_eq!(redactor.flush(), "h");
    assert!(!redactor.holds_back());
    assert_eq!(redactor.flush(), "");
}

#[test]
fn bytes_without_secrets_are_not_copied() {
    let bytes = Bytes::from("nothing to see");
    for secrets in [&[][..], &["XYZ-secret"]] {
        let passed = redactor(secrets).feed(bytes.clone());
        assert_eq!(passed.as_ptr(), bytes.as_ptr());
    }
    let cut = redactor(&["see-you"]).feed(bytes.clone());
    assert_eq!(cut, "nothing to ");
    assert_eq!(cut.as_ptr(), bytes.as_ptr());
}

#[test]
fn the_longest_of_several_secrets_is_hidden() {
    let mut redactor = redactor(&["pass", "password1", "word"]);
    let pieces = ["a pass", "word1 pa", "ss passwor"];
    assert_eq!(
        passed(&mut redactor, &pieces),
        "a ******** ******** ********wor"
    );
}

#[test]
fn a_very_short_secret_is_hidden_until_the_next_input() {
    let mut redactor = redactor(&["a\n", "longer"]);
    assert_eq!(passed(&mut redactor, &["abc"]), "********bc");
    redactor.next_input();
    assert_eq!(passed(&mut redactor, &["abc longer"]), "abc ********");
}

#[test]
fn the_oldest_of_too_many_secrets_is_forgotten() {
    let mut redactor = Redactor::new();
    redactor.hide(b"");
    redactor.hide(b"\r\n");
    for number in 0..=MAX_SECRETS {
        redactor.hide(format!("secret{number:02}").as_bytes());
        // Known already, so it takes no other's place.
        redactor.hide(format!("secret{number:02}").as_bytes());
    }
    let text = "secret00 secret01 secret16";
    assert_eq!(passed(&mut redactor, &[text]), "secret00 ******** ********");
}

#[test]
fn a_secret_is_not_shown_for_debugging() {
    let mut redactor = redactor(&["hunter2"]);
    redactor.feed(Bytes::from("hunte"));
    let shown = format!("{redactor:?}");
    assert_eq!(shown, "Redactor { secrets: 1, .. }");
}

/// Replaces in the whole text at once, the leftmost and longest first.
fn oracle(text: &str, secrets: &[String]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let found = secrets
            .iter()
            .filter(|secret| !secret.is_empty() && rest.starts_with(secret.as_str()))
            .max_by_key(|secret| secret.len());
        match found {
            Some(secret) => {
                out.push_str("********");
                rest = &rest[secret.len()..];
            }
            None => {
                out.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    out
}

proptest! {
    #[test]
    fn any_cuts_give_what_replacing_in_the_whole_gives(
        pieces in prop::collection::vec("[ab]{0,6}", 0..12),
        secrets in prop::collection::vec("[ab]{0,6}", 0..5),
    ) {
        let names: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let parts: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(
            passed(&mut redactor(&names), &parts),
            oracle(&pieces.concat(), &secrets)
        );
    }
}
