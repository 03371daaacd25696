//! Patterns match as documented and as a naive model does, at bounded cost.
#![allow(clippy::unwrap_used)]

use proptest::{collection::vec, prelude::*, sample::select};
use vmcell_wire::pattern::{
    Filter, Glob, MAX_PATTERN, MAX_RULES, MAX_RULES_BYTES, PatternError, PatternErrorKind,
    RuleMatch, Rules, Selection,
};

fn glob(pattern: &[u8]) -> Glob {
    Glob::new(pattern).unwrap()
}

fn kind(pattern: &[u8]) -> PatternErrorKind {
    Glob::new(pattern).unwrap_err().kind
}

#[test]
fn a_glob_matches_whole_paths() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("a", &["a"], &["b", "a/b", "b/a", "aa", ""]),
        ("*", &["a", ".a", "*"], &["a/b", ""]),
        ("a*c", &["ac", "abc", "a*c", "acc"], &["ab", "a/c", "acb"]),
        ("?b", &["ab", "?b"], &["b", "aab", "a/b"]),
        ("a**b", &["ab", "axb"], &["a/b", "a/x/b"]),
        ("[a-c]x", &["ax", "cx"], &["dx", "-x", "x"]),
        ("[!a-c]x", &["dx"], &["ax", "/x", "x"]),
        ("[^a]", &["b", "^"], &["a"]),
        ("[]a]", &["]", "a"], &["[", "b"]),
        ("[!]a]", &["b"], &["]", "a"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[z-a]", &["z"], &["a", "m"]),
        (r"[\]-a]", &["]", "^", "a"], &["\\", "b"]),
        ("[[:digit:]_]", &["7", "_"], &["a", ":", "["]),
        ("[[:d]", &["[", ":", "d"], &["7", "]"]),
        ("x[a/b]y", &["xay"], &["x/y", "x[a/b]y"]),
        (r"\*\[\\", &[r"*[\"], &[r"a[\"]),
        ("**", &["a", "a/b"], &[""]),
        ("a/**", &["a/b", "a/b/c"], &["a", "b/a/c"]),
        ("**/a", &["a", "b/a", "c/b/a"], &["a/b", "ba"]),
        (
            "a/**/b",
            &["a/b", "a/x/b", "a/b/b", "a/x/y/b"],
            &["a", "ab", "a/b/x"],
        ),
        ("**/a/**/b/**", &["a/b/c", "x/a/x/b/c/d"], &["a/b", "b/a/c"]),
        ("**/a/b/**/b/c", &["a/b/b/c", "a/a/b/b/b/c"], &["a/b/c"]),
        (
            "**/a/**/a/**/b",
            &["a/a/b", "x/a/x/a/x/b"],
            &["a/b", "a/x/b"],
        ),
        ("a/***/b", &["a/b", "a/x/b"], &["a"]),
    ];
    for (pattern, matching, others) in table {
        let glob = glob(pattern.as_bytes());
        for path in *matching {
            assert!(glob.matches(path.as_bytes()), "{pattern} on {path}");
        }
        for path in *others {
            assert!(!glob.matches(path.as_bytes()), "{pattern} on {path}");
        }
    }
}

#[test]
fn names_need_not_be_text() {
    assert!(glob(b"\xff*").matches(b"\xff\xfe\n\x1b"));
    assert!(glob(b"??").matches("é".as_bytes()));
    assert!(glob(b"[\x80-\xff]").matches(b"\xc3"));
    assert!(!glob(b"[!\x80-\xff]").matches(b"\xc3"));
}

#[test]
fn a_malformed_glob_is_refused() {
    for pattern in ["[", "a[b", "[!", "[]", "[a-", r"[\", "[[:digit:]", "[[:"] {
        assert_eq!(kind(pattern.as_bytes()), PatternErrorKind::UnclosedBracket);
    }
    for pattern in ["[[:digits:]]", "[[::]]", "x/[a[:Alpha:]]"] {
        assert_eq!(kind(pattern.as_bytes()), PatternErrorKind::UnknownClass);
    }
    for pattern in ["", "/", "/a", "a/", "a//b", "./a", "a/..", r"a/\.", r"a\/"] {
        assert_eq!(kind(pattern.as_bytes()), PatternErrorKind::BadComponent);
    }
    assert_eq!(kind(br"a/b\"), PatternErrorKind::TrailingBackslash);
    assert_eq!(kind(b"a\0b"), PatternErrorKind::ZeroByte);
    assert_eq!(kind(&[b'a'; MAX_PATTERN + 1]), PatternErrorKind::TooLong);
    assert!(Glob::new(&[b'a'; MAX_PATTERN]).is_ok());
}

#[test]
fn a_walk_can_begin_at_the_literal_prefix() {
    let table: &[(&str, &str)] = &[
        ("src/**/*.rs", "src"),
        ("a/b/c", "a/b/c"),
        ("a/b?/c", "a"),
        ("**/a", ""),
        ("*", ""),
        (r"a\*/\b/[c]", "a*/b"),
        (r"a\/b/*", "a/b"),
    ];
    for (pattern, prefix) in table {
        let glob = glob(pattern.as_bytes());
        assert_eq!(glob.literal_prefix(), prefix.as_bytes(), "{pattern}");
    }
}

#[test]
fn a_walk_enters_no_directory_in_vain() {
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "src/*/x.c",
            &["", "src", "src/a"],
            &["doc", "src/a/x.c", "a/src", "src/a/b"],
        ),
        ("a/**", &["", "a", "a/b/c"], &["b"]),
        ("a/**/b", &["a", "a/b", "a/b/c"], &["b", "b/a"]),
        ("**/x", &["", "a/b/c"], &[]),
        ("a", &[""], &["a", "b"]),
    ];
    for (pattern, entered, others) in table {
        let glob = glob(pattern.as_bytes());
        for directory in *entered {
            assert!(
                glob.could_match_below(directory.as_bytes()),
                "{pattern} in {directory}"
            );
        }
        for directory in *others {
            assert!(
                !glob.could_match_below(directory.as_bytes()),
                "{pattern} in {directory}"
            );
        }
    }
}

/// Each of these is the worst case of a common algorithm. If a match cost more
/// than pattern times path, the test would not finish.
#[test]
fn hostile_patterns_and_paths_take_bounded_work() {
    let name = [b'a'; 4096];
    let deep = b"a/".repeat(2047);
    let deep = &[&deep[..], b"a"].concat()[..];
    let sets = [&b"*[!b]".repeat(680)[..], b"b"].concat();
    for pattern in [
        &[&b"*a".repeat(2000)[..], b"b"].concat()[..],
        &[&b"**".repeat(1000)[..], b"b"].concat(),
        &sets,
        &b"?*".repeat(2048),
        &b"*?".repeat(2048),
    ] {
        let matches = glob(pattern).matches(&name);
        assert!(!pattern.ends_with(b"b") || !matches);
        glob(pattern).matches(deep);
    }
    for pattern in [
        &[&b"**/".repeat(1365)[..], b"b"].concat()[..],
        &[&b"**/a/".repeat(800)[..], b"b"].concat(),
        &[&b"**/*a*/".repeat(580)[..], b"**/b/**/a"].concat(),
        &[&b"*/".repeat(2000)[..], b"**/b/**"].concat(),
    ] {
        assert!(!glob(pattern).matches(deep));
        glob(pattern).could_match_below(deep);
    }
    let line = [&b"**/a/".repeat(12)[..], b"b\n"].concat();
    let lines = line.repeat(MAX_RULES);
    let rules = Rules::parse(&lines).unwrap();
    assert_eq!(rules.match_path(deep, true), RuleMatch::Unmentioned);
}

#[test]
fn lists_are_bounded() {
    let rules = |lines: &[u8]| Rules::parse(lines).map(drop);
    let whole = |kind| Err(PatternError { line: None, kind });
    let in_line = |line, kind| {
        let line = Some(line);
        Err(PatternError { line, kind })
    };
    assert_eq!(rules(&b"a\n\n#c\n".repeat(MAX_RULES)), Ok(()));
    assert_eq!(
        rules(&b"a\n".repeat(MAX_RULES + 1)),
        whole(PatternErrorKind::TooManyRules)
    );
    assert_eq!(rules(&[b'\n'; MAX_RULES_BYTES]), Ok(()));
    assert_eq!(
        rules(&[b'\n'; MAX_RULES_BYTES + 1]),
        whole(PatternErrorKind::TooLarge)
    );
    let long = [b"a\n", &[b'a'; MAX_PATTERN + 1][..]].concat();
    assert_eq!(rules(&long), in_line(2, PatternErrorKind::TooLong));
    assert_eq!(
        rules(b"a\n#[\n\nb[\n"),
        in_line(4, PatternErrorKind::UnclosedBracket)
    );
    assert_eq!(
        rules(b"a\r\nb\\\r\n"),
        in_line(2, PatternErrorKind::TrailingBackslash)
    );
    assert_eq!(rules(b"a\0"), in_line(1, PatternErrorKind::ZeroByte));
    let error = rules(b"[[:x:]]").unwrap_err().to_string();
    assert!(error.starts_with("line 1: unknown class"), "{error}");
}

#[test]
fn without_include_lines_all_is_taken_that_is_not_excluded() {
    let filter = Filter::new(b"# nothing\n\n", b"target\n!/target\n*.o\n!keep/*.o").unwrap();
    let table: &[(&str, bool, Selection)] = &[
        ("", true, Selection::Include),
        ("src", true, Selection::Include),
        ("src/main.c", false, Selection::Include),
        ("src/main.o", false, Selection::Skip),
        ("target/a", false, Selection::Include),
        ("src/target/a", false, Selection::Skip),
        ("keep/a.o", false, Selection::Include),
        ("src/target/keep/a.o", false, Selection::Skip),
    ];
    check(&filter, table);
}

#[test]
fn include_lines_take_what_they_match_with_all_below_it() {
    let filter = Filter::new(
        b"/src/\n!/src/old\n/src/old/new.c\ndoc/*/*.md\n",
        b"*.o\n/src/tmp/\n",
    )
    .unwrap();
    let table: &[(&str, bool, Selection)] = &[
        ("", true, Selection::Enter),
        ("src", true, Selection::Include),
        // The line matches directories only.
        ("src", false, Selection::Skip),
        ("src/a/b.c", false, Selection::Include),
        ("src/a/b.o", false, Selection::Skip),
        ("src/tmp", true, Selection::Skip),
        ("src/tmp/a.c", false, Selection::Skip),
        ("src/old", true, Selection::Enter),
        ("src/old/a.c", false, Selection::Skip),
        ("src/old/new.c", false, Selection::Include),
        ("src/old/deep", true, Selection::Skip),
        ("doc", true, Selection::Enter),
        ("doc/a", true, Selection::Enter),
        ("doc/a/b.md", false, Selection::Include),
        ("doc/a/b.txt", false, Selection::Skip),
        ("doc/a/b", true, Selection::Skip),
        ("doc/b.md", false, Selection::Skip),
        ("other", true, Selection::Skip),
    ];
    check(&filter, table);
}

#[test]
fn an_include_list_of_exceptions_takes_nothing() {
    let filter = Filter::new(b"!a", b"").unwrap();
    check(
        &filter,
        &[("a", true, Selection::Skip), ("b", false, Selection::Skip)],
    );
}

fn check(filter: &Filter, table: &[(&str, bool, Selection)]) {
    for &(path, is_dir, expected) in table {
        assert_eq!(filter.select(path.as_bytes(), is_dir), expected, "{path}");
    }
}

/// A naive matcher that follows the documentation and tries all possibilities.
fn model(pattern: &[&[u8]], path: &[&[u8]]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([first], _) if is_deep(first) => !path.is_empty(),
        ([first, rest @ ..], _) if is_deep(first) => {
            (0..=path.len()).any(|count| model(rest, &path[count..]))
        }
        ([first, pattern @ ..], [name, path @ ..]) => {
            model_name(first, name) && model(pattern, path)
        }
        _ => false,
    }
}

fn is_deep(component: &[u8]) -> bool {
    component.len() > 1 && component.iter().all(|&byte| byte == b'*')
}

fn model_name(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|count| model_name(rest, &name[count..])),
        ([b'?', pattern @ ..], [_, name @ ..]) => model_name(pattern, name),
        ([b'[', b'!', not, b']', pattern @ ..], [byte, name @ ..]) => {
            not != byte && model_name(pattern, name)
        }
        ([b'[', low, b'-', high, b']', pattern @ ..], [byte, name @ ..]) => {
            (low..=high).contains(&byte) && model_name(pattern, name)
        }
        ([b'\\', wanted, pattern @ ..] | [wanted, pattern @ ..], [byte, name @ ..]) => {
            wanted == byte && model_name(pattern, name)
        }
        _ => false,
    }
}

fn split(path: &[u8]) -> Vec<&[u8]> {
    path.split(|&byte| byte == b'/').collect()
}

fn joined(pieces: &'static [&'static str], components: usize) -> impl Strategy<Value = String> {
    let component = vec(select(pieces), 1..6).prop_map(|pieces| pieces.concat());
    vec(component, 1..components).prop_map(|components| components.join("/"))
}

fn any_path() -> impl Strategy<Value = String> {
    joined(&["a", "b", "c", "*"], 7)
}

fn any_pattern() -> impl Strategy<Value = String> {
    let component = prop_oneof![
        1 => Just(vec!["**"]),
        2 => vec(select(&["a", "b", "*", "?", "[!a]", "[a-b]", "\\*", "\\b"][..]), 1..6),
    ];
    vec(component.prop_map(|pieces| pieces.concat()), 1..6)
        .prop_map(|components| components.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_naive_model_agrees(pattern in any_pattern(), path in any_path()) {
        let expected = model(&split(pattern.as_bytes()), &split(path.as_bytes()));
        prop_assert_eq!(glob(pattern.as_bytes()).matches(path.as_bytes()), expected);
    }

    #[test]
    fn a_walk_that_is_pruned_misses_nothing(pattern in any_pattern(), path in any_path()) {
        let glob = glob(pattern.as_bytes());
        let path = path.as_bytes();
        if glob.matches(path) {
            for (end, _) in path.iter().enumerate().filter(|&(_, &byte)| byte == b'/') {
                prop_assert!(glob.could_match_below(&path[..end]));
            }
            let prefix = glob.literal_prefix();
            if !prefix.is_empty() {
                prop_assert!(split(path).starts_with(&split(prefix)));
            }
        }
    }

    #[test]
    fn a_filter_that_skips_a_directory_takes_nothing_below_it(
        include in vec(any_pattern(), 0..4),
        exclude in vec(any_pattern(), 0..3),
        path in any_path(),
    ) {
        let filter = Filter::new(include.join("\n!").as_bytes(), exclude.join("\n!").as_bytes());
        let (filter, path) = (filter.unwrap(), path.as_bytes());
        let mut parent = filter.select_root();
        for (end, _) in path.iter().enumerate().filter(|&(_, &byte)| byte == b'/') {
            let selection = filter.select(&path[..end], true);
            prop_assert_eq!(filter.select_within(parent, &path[..end], true), selection);
            parent = selection;
        }
        let selection = filter.select(path, false);
        prop_assert_eq!(filter.select_within(parent, path, false), selection);
        prop_assert!(selection != Selection::Enter);
        prop_assert!(parent != Selection::Skip || selection == Selection::Skip);
    }

    #[test]
    fn no_bytes_make_it_panic(lines in vec(any::<u8>(), 0..64), path in vec(any::<u8>(), 0..32)) {
        if let Ok(glob) = Glob::new(&lines) {
            glob.matches(&path);
            glob.could_match_below(&path);
        }
        if let Ok(filter) = Filter::new(&lines, &lines) {
            filter.select(&path, true);
        }
    }
}
