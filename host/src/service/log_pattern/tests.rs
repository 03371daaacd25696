use proptest::prelude::*;
use vmcell_wire::service::log_pattern::LogMatcher;

use super::{LogPatternError, compile};

fn matcher(pattern: &str) -> LogMatcher {
    LogMatcher::new(compile(pattern).unwrap().as_pattern())
}

fn matches(pattern: &str, line: &[u8]) -> bool {
    matcher(pattern).matches(line)
}

fn error(pattern: &str) -> LogPatternError {
    compile(pattern).unwrap_err()
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
    assert!(matches("()", b""));
    assert!(matches(r"\[(INFO|WARN)\] up{1,3}\b", b"12:00 [INFO] uppp!"));
    assert!(!matches(
        r"\[(INFO|WARN)\] up{1,3}\b",
        b"12:00 [INFO] upppp"
    ));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (pattern, place, what) in [
        ("on (port", 4, "unclosed group"),
        ("a)", 2, "unopened group"),
        ("a|*", 3, "missing expression"),
        ("ä*)", 3, "unopened group"),
        ("x{3", 2, "unclosed counted repetition"),
        ("x{9,1}", 2, "invalid repetition count"),
        ("{", 1, "missing expression"),
        ("[ab", 1, "unclosed character class"),
        ("[z-a]", 2, "invalid character class range"),
        (r"\q", 1, "unrecognized escape"),
        ("a\\", 2, "incomplete escape"),
        ("(?=a)", 1, "look-around"),
        (r"(a)\1", 4, "backreferences"),
        ("(?P<1>a)", 5, "capture group"),
        ("[ä]", 2, "ASCII"),
        (r"\pL", 1, "ASCII"),
    ] {
        let LogPatternError::Syntax { position, reason } = error(pattern) else {
            panic!("{pattern}: {:?}", error(pattern));
        };
        assert!(reason.contains(what), "{pattern}: {reason}");
        assert_eq!(position, place, "{pattern}: {reason}");
        let text = error(pattern).to_string();
        let start = format!("invalid at character {place}: {reason}; write \\ before");
        assert!(text.starts_with(&start), "{text}");
    }
    assert_eq!(error(""), LogPatternError::Empty);
}

#[test]
fn assertions_that_the_agent_does_not_know_are_refused() {
    for pattern in [
        "(?m)^ready",
        "(?m:ready$)",
        "(?mR)^ready$",
        r"\b{start}ready",
        r"ready\b{end-half}",
        r"(?u)\bready",
    ] {
        let unsupported = LogPatternError::UnsupportedAssertion;
        assert_eq!(error(pattern), unsupported, "{pattern}");
    }
}

#[test]
fn an_expression_has_its_limits() {
    let long = "x".repeat(1025);
    assert_eq!(error(&long), LogPatternError::TooLong { length: 1025 });
    assert!(error(&long).to_string().contains("1024"));
    assert!(matches(&long[..999], long.as_bytes()));
    for pattern in [
        "(((a{99}){99}){99})",
        "a{1000}",
        "a{4294967295}",
        "(a|){4294967295}",
        "(ab){0,4294967295}",
        "(a{900}){0,2}",
        "(ab|cd){200}",
        r"(?u)\w",
        &long[..1000],
    ] {
        assert_eq!(error(pattern), LogPatternError::TooLarge, "{pattern}");
    }
    // Repeating an empty group many times takes no time.
    assert!(matches("((){1000}){1000}", b""));
    assert!(matches(r"((\b|()){4294967295,}){4294967295,}", b""));
    // No expression is nested too deeply.
    for (open, close) in [("(", ")"), ("(?:", ")*"), ("", "*"), ("", "{1}")] {
        let count = 1023 / (open.len() + close.len());
        let count = count.min(499);
        let pattern = format!("{}a{}", open.repeat(count), close.repeat(count));
        assert!(matches(&pattern, b"ba"), "{pattern}");
    }
    assert!(matches(&format!("a{}", "*?".repeat(499)), b""));
}

#[test]
fn a_program_has_no_more_instructions_than_needed() {
    for (pattern, count) in [
        ("ready", 6),
        ("^ready on [0-9]+$", 14),
        ("a|b|c", 2),
        ("ab|cd|ef", 11),
        ("(?i)up", 3),
        ("a?b*", 6),
        ("a{2,4}", 7),
        (r"[a-z]{900}[^\n]", 902),
        ("ä|ö", 7),
    ] {
        let program = compile(pattern).unwrap();
        let instructions = program.as_pattern().instructions();
        assert_eq!(instructions.count(), count, "{pattern}");
        // Equal expressions give equal bytes.
        assert_eq!(program, compile(pattern).unwrap());
    }
    // A class is stored once.
    let bytes = compile("[a-z]{900}[a-z.]").unwrap();
    assert_eq!(bytes.as_pattern().as_bytes().len(), 2 + 2 * 902 + 2 * 32);
}

#[test]
fn characters_are_matched_as_their_bytes() {
    assert!(matches("ä|ö", "tür öffnen".as_bytes()));
    assert!(!matches("ä|ö", "tür".as_bytes()));
    assert!(matches("^(ä|ö|x)+$", "xöä".as_bytes()));
    assert!(matches("(?u)^[ä-ö]$", "ë".as_bytes()));
    assert!(!matches("(?u)^[ä-ö]$", "ü".as_bytes()));
    assert!(matches("^..$", "ä".as_bytes()));
    assert!(!matches(r"[^\x00-\xff]", b"any"));
    assert!(matches(r"a[^\x00-\xff]*b", b"ab"));
}

#[test]
fn an_expression_that_others_choke_on_takes_no_time() {
    let mut pattern = matcher("(a+)+$");
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
        let Ok(program) = compile(&pattern) else {
            prop_assert_eq!(error(&pattern), LogPatternError::TooLarge);
            return Ok(());
        };
        let mut ours = LogMatcher::new(program.as_pattern());
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
        if let Ok(program) = compile(&pattern) {
            let mut ours = LogMatcher::new(program.as_pattern());
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
        if let Ok(program) = compile(&pattern) {
            LogMatcher::new(program.as_pattern()).matches(&line);
        }
    }
}
