use alloc::{format, string::String, vec, vec::Vec};

use proptest::prelude::*;

use super::Pattern;

fn matches(pattern: &str, line: &[u8]) -> bool {
    Pattern::new(pattern).unwrap().matches(line)
}

fn error(pattern: &str) -> String {
    Pattern::new(pattern).map(|_| ()).unwrap_err()
}

/// The same expression, compiled by the crate `regex`.
fn oracle(pattern: &str) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .build()
}

#[test]
fn expressions_match_as_usual() {
    assert!(matches("ready", b"server ready on 80"));
    assert!(matches("^ready$", b"ready"));
    assert!(!matches("^ready$", b"not ready"));
    assert!(matches(
        r"listening on (port )?\d+",
        b"listening on port 8080"
    ));
    assert!(matches("(?i)READY", b"ready"));
    assert!(matches("a.c", b"a\xffc"));
    assert!(matches("bereit f\u{fc}r", "bereit für alles".as_bytes()));
    assert!(matches("", b""));
    assert!(matches(r"\[(INFO|WARN)\] up{1,3}\b", b"12:00 [INFO] uppp!"));
    assert!(!matches(
        r"\[(INFO|WARN)\] up{1,3}\b",
        b"12:00 [INFO] upppp"
    ));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (pattern, place, what) in [
        ("on (port", 4, "not closed"),
        ("a)", 2, "no group"),
        ("a|*", 3, "nothing to repeat"),
        ("x{3", 3, "is invalid"),
        ("x{9,1}", 6, "is invalid"),
        ("{", 1, "number is missing"),
        ("[ab", 1, "not closed"),
        ("[z-a]", 4, "range"),
        ("[[:nothing:]]", 10, "no such class"),
        (r"\q", 2, "no such escape"),
        ("a\\", 2, "missing behind"),
        ("(?=a)", 1, "no such group"),
        ("(?P<1>a)", 5, "name"),
        ("[ä]", 2, "ASCII"),
    ] {
        let text = error(pattern);
        assert!(
            text.contains(&format!("character {place}:")),
            "{pattern}: {text}"
        );
        assert!(text.contains(what), "{pattern}: {text}");
    }
}

#[test]
fn an_expression_has_its_limits() {
    assert!(error(&"x".repeat(2000)).contains("1024"));
    assert!(error(&"(".repeat(600)).contains("too deep"));
    for pattern in [
        "(((a{99}){99}){99})",
        "a{1001}",
        "(a{900}){0,2}",
        "(a|b){400}",
    ] {
        assert!(error(pattern).contains("too large"), "{pattern}");
    }
    // Repeating an empty group many times takes no time.
    assert!(matches("((){1000}){1000}", b""));
}

#[test]
fn an_expression_that_others_choke_on_takes_no_time() {
    let mut pattern = Pattern::new("(a+)+$").unwrap();
    let mut line = vec![b'a'; 4096];
    line.push(b'b');
    assert!(!pattern.matches(&line));
    let optional = format!("{}{}", "a?".repeat(100), "a".repeat(100));
    assert!(!matches(&optional, &[b'a'; 99]));
    assert!(matches(&optional, &[b'a'; 100]));
    assert!(!matches("(a*)*(a*)*(a*)*b", &line[..4096]));
}

/// Generates valid expressions.
fn sensible() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        "[ab1_ ]",
        Just(String::from(".")),
        Just(String::from("^")),
        Just(String::from("$")),
        Just(String::from(r"\b")),
        Just(String::from(r"\B")),
        r"\\[dDwWsS.]",
        r"\[\^?[ab1]-?\]",
        r"\[\^?a-b[_ ]\\d\]",
        r"\[\^?\[:\^?(alpha|digit|space|word|punct):\]a\]",
        Just(String::from(r"\x61")),
        Just(String::from(r"\xff")),
    ];
    atom.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| format!("({})", parts.join("|"))),
            (
                inner.clone(),
                r"[*+?]\??|\{[0-3]\}|\{[0-2],\}|\{[0-2],[2-4]\}\??"
            )
                .prop_map(|(part, repeat)| format!("(?:{part}){repeat}")),
            inner.clone().prop_map(|part| format!("(?i:{part})")),
            inner.prop_map(|part| format!("(?P<name>{part}|)")),
        ]
    })
    // A name may occur only once in an expression.
    .prop_map(|pattern| pattern.replace("?P<name>", ""))
}

fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop::sample::select(&b"aaabbbA1_ .\xff\n"[..]);
    prop::collection::vec(prop::collection::vec(byte, 0..12), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Compares with the crate `regex`.
    #[test]
    fn an_expression_means_what_it_means_elsewhere(pattern in sensible(), lines in lines()) {
        let Ok(mut ours) = Pattern::new(&pattern) else {
            // It was rejected as too large.
            prop_assert!(error(&pattern).contains("too large"), "{}", error(&pattern));
            return Ok(());
        };
        let theirs = oracle(&pattern).unwrap();
        for line in lines {
            prop_assert_eq!(ours.matches(&line), theirs.is_match(&line), "{:?} {:?}", pattern, line);
        }
    }

    /// Every accepted expression is also valid for the crate `regex`.
    #[test]
    fn nothing_is_understood_that_makes_no_sense_elsewhere(
        pattern in r"([ab1ixP_.:,&~<>=!^$|*+?(){}\[\]\\dwsbBnz-]|\(\?i\)|\(\?:|\[\^|\\x6|\{1,2\}){0,12}",
        lines in lines(),
    ) {
        if let Ok(mut ours) = Pattern::new(&pattern) {
            let theirs = oracle(&pattern);
            prop_assert!(theirs.is_ok(), "{:?}: {:?}", pattern, theirs);
            for line in lines {
                let expected = theirs.as_ref().unwrap().is_match(&line);
                prop_assert_eq!(ours.matches(&line), expected, "{:?} {:?}", pattern, line);
            }
        }
    }

    #[test]
    fn no_expression_is_too_much(pattern in any::<String>(), line in any::<Vec<u8>>()) {
        if let Ok(mut pattern) = Pattern::new(&pattern) {
            pattern.matches(&line);
        }
    }
}
