//! Compares rules with git and with the `ignore` crate.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ignore::gitignore::GitignoreBuilder;
use proptest::{collection::vec, prelude::*, sample::select};
use tempfile::TempDir;
use vmcell_wire::pattern::{RuleMatch, Rules};

/// A git work tree. Git treats paths that do not exist in it as files.
struct Repository(TempDir);

impl Repository {
    /// Returns `None` if git is not installed.
    fn new() -> Option<Self> {
        let repository = Self(TempDir::new().unwrap());
        match repository.git().args(["init", "--quiet"]).status() {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                println!("skipped: git cannot be run ({error})");
                return None;
            }
        }
        for directory in directories() {
            fs::create_dir_all(repository.0.path().join(directory)).unwrap();
        }
        Some(repository)
    }

    /// Returns a git command without user and system configuration.
    fn git(&self) -> Command {
        let mut git = Command::new("git");
        git.current_dir(&self.0)
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.0.path());
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            git.env_remove(variable);
        }
        git
    }

    /// Returns git's decision about each path, which considers its parents.
    fn verdicts(&self, lines: &[u8], paths: &[String]) -> Vec<RuleMatch> {
        fs::write(self.0.path().join(".gitignore"), lines).unwrap();
        let mut git = self.git();
        git.args(["check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut git = git.spawn().unwrap();
        let input = paths.join("\0");
        git.stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = git.wait_with_output().unwrap().stdout;
        // Per path: source, line, pattern and path, each followed by a zero byte.
        let fields: Vec<&[u8]> = output.split(|&byte| byte == 0).collect();
        let records = fields.chunks_exact(4);
        assert_eq!(records.len(), paths.len());
        records
            .zip(paths)
            .map(|(record, path)| {
                assert_eq!(record[3], path.as_bytes());
                match record[2] {
                    [] => RuleMatch::Unmentioned,
                    [b'!', ..] => RuleMatch::Included,
                    _ => RuleMatch::Excluded,
                }
            })
            .collect()
    }
}

const DIRECTORIES: [&str; 4] = ["a", "b", "ab", "#a"];
const FILES: [&str; 8] = ["c", "ac", "bb", "a.c", "!c", "c ", "[c]", "*\\"];

/// Returns directories three levels deep.
fn directories() -> Vec<String> {
    let mut all = Vec::new();
    let mut level = vec![String::new()];
    for _ in 0..3 {
        let below = |parent: &String| DIRECTORIES.map(|name| format!("{parent}{name}"));
        let names: Vec<String> = level.iter().flat_map(below).collect();
        level = names.iter().map(|name| format!("{name}/")).collect();
        all.extend(names);
    }
    all
}

/// Returns every directory, and some files in each of them.
fn paths() -> Vec<String> {
    let mut all = directories();
    for (at, directory) in directories().iter().enumerate() {
        for file in FILES.iter().cycle().skip(at).step_by(3).take(2) {
            all.push(format!("{directory}/{file}"));
        }
    }
    all.extend(FILES.map(String::from));
    all
}

/// Returns the decision of a walk that does not enter excluded directories.
fn walked(rules: &Rules, path: &str, is_dir: bool) -> RuleMatch {
    let parents = path
        .match_indices('/')
        .map(|(end, _)| &path.as_bytes()[..end]);
    for parent in parents {
        if rules.match_path(parent, true) == RuleMatch::Excluded {
            return RuleMatch::Excluded;
        }
    }
    rules.match_path(path.as_bytes(), is_dir)
}

fn agrees_with_git(repository: &Repository, lines: &[u8]) {
    let rules = Rules::parse(lines).unwrap();
    let directories = directories();
    let paths = paths();
    for (path, expected) in paths.iter().zip(repository.verdicts(lines, &paths)) {
        let verdict = walked(&rules, path, directories.contains(path));
        let shown = lines.escape_ascii();
        assert_eq!(verdict, expected, "`{shown}` on `{path}`");
    }
}

/// Returns whether git treats the pattern differently from its documentation: git
/// skips the literal prefix and then takes the stars of `a**/b` for a whole
/// component.
fn differs_from_git_docs(line: &str) -> bool {
    let line = line.strip_prefix('!').unwrap_or(line);
    let pattern = line.trim_end_matches([' ', '\r', '/']);
    let plain = pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len());
    let (plain, rest) = pattern.split_at(plain);
    let after = rest.trim_start_matches('*');
    line.contains('/')
        && !plain.is_empty()
        && !plain.ends_with('/')
        && rest.starts_with("**")
        && (after.is_empty() || after.starts_with('/') || after.starts_with("\\/"))
}

fn any_line() -> impl Strategy<Value = String> {
    let line = (
        select(&["", "", "", "!", "/", "!/"][..]),
        vec(select(PIECES), 1..6),
    );
    line.prop_map(|(start, pieces)| start.to_owned() + &pieces.concat())
        .prop_filter("git contradicts itself", |line| {
            !differs_from_git_docs(line)
        })
}

const PIECES: &[&str] = &[
    "a",
    "b",
    "c",
    "ab",
    ".",
    "*",
    "*",
    "?",
    "/",
    "/",
    "**/",
    "/**",
    "/**/",
    "**",
    "[ab]",
    "[!a]",
    "[a-b]",
    "[^/]",
    "[a/b]",
    "[]-a]",
    "[[:alpha:]]",
    "[[:punct:]]",
    "[\\]c]",
    "\\*",
    "\\a",
    "\\/",
    "\\!",
    "\\#",
    "#",
    "!",
    " ",
    "\\ ",
    "  ",
    "\r",
    "\t",
];

#[test]
fn git_agrees_on_generated_rules() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    };
    let lines = vec(any_line(), 1..6).prop_filter("an error here", |lines| {
        Rules::parse(lines.join("\n").as_bytes()).is_ok()
    });
    proptest!(config, |(lines in lines)| {
        agrees_with_git(&repository, lines.join("\n").as_bytes());
    });
}

#[test]
fn git_agrees_on_the_corners() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let table: &[&str] = &[
        "",
        "/",
        "!",
        "!/",
        "//",
        "//a",
        "a//",
        "a//b",
        "*",
        "/*\n!/a\n!/b/",
        "**",
        "/**",
        "**/",
        "a/**",
        "a/**/",
        "**/a/**",
        "a/**/b",
        "a/**/**/b",
        "a/***/b",
        "**\\/b",
        "a/**\\/b",
        "a\\/b",
        "a/b/",
        "a/\n!a/b",
        "a/*\n!a/b",
        "*\n!*/\n!c",
        "*\n!a",
        "\\#a",
        "#a",
        " #a",
        "\\!c",
        "c ",
        "c\\ ",
        "c\\  ",
        "c\\\\ ",
        "c \r\n/b\r\n",
        "c\\ \r\n",
        "a\r\r\n",
        "\u{feff}c\n",
        "\\[c]",
        "[[]c]",
        "[[]c[]]",
        "*\\\\",
        "*\\\\ ",
        "*\\\\\\ ",
        "[*][\\\\]",
        "a[./]c",
        "[a-c]",
        "[!a-c]",
        "[^!]c",
        "[!!]c",
        "[b-a]",
        "[--z]b",
        "[[:alpha:]-c]b",
        "[[:x]",
        "a?",
        "/?b/",
        "*b/",
        "*/c",
        "*/*/c",
        "?/**/c",
        "a*/b",
        "**b/c",
        "b/**b",
    ];
    for lines in table {
        agrees_with_git(&repository, lines.as_bytes());
    }
}

#[test]
fn git_agrees_on_every_byte_of_every_class() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let bytes = || (1..=127).map(char::from).filter(|&byte| byte != '/');
    let paths: Vec<String> = bytes().map(|byte| format!("x{byte}")).collect();
    for class in [
        "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
        "upper", "xdigit",
    ] {
        for line in [format!("x[[:{class}:]]"), format!("x[^[:{class}:]]")] {
            let rules = Rules::parse(line.as_bytes()).unwrap();
            let verdicts = repository.verdicts(line.as_bytes(), &paths);
            for (path, expected) in paths.iter().zip(verdicts) {
                assert_eq!(
                    rules.match_path(path.as_bytes(), false),
                    expected,
                    "{line} on {path:?}"
                );
            }
        }
    }
}

/// Returns the decision of the `ignore` crate about one path.
fn ignored(lines: &[String], path: &str, is_dir: bool) -> RuleMatch {
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        builder.add_line(None::<PathBuf>, line).unwrap();
    }
    let verdict = builder.build().unwrap();
    let verdict = verdict.matched(Path::new(path), is_dir);
    match (verdict.is_ignore(), verdict.is_whitelist()) {
        (true, _) => RuleMatch::Excluded,
        (_, true) => RuleMatch::Included,
        _ => RuleMatch::Unmentioned,
    }
}

proptest! {
    /// Leaves out the cases in which the crate differs from git: `[!a]`, which
    /// matches a slash there; slashes that are escaped, in brackets or repeated;
    /// and repeated stars that are not a whole component.
    #[test]
    fn the_ignore_crate_agrees(
        lines in vec(plain_line(), 1..5),
        path in select(paths()),
        is_dir: bool,
    ) {
        let rules = Rules::parse(lines.join("\n").as_bytes()).unwrap();
        let verdict = rules.match_path(path.as_bytes(), is_dir);
        prop_assert_eq!(verdict, ignored(&lines, &path, is_dir), "{:?}", lines);
    }
}

fn plain_line() -> impl Strategy<Value = String> {
    let name = vec(
        select(&["a", "b", "c", ".", "*", "?", "[ab]", "[a-b]", "\\*", "\\a"][..]),
        1..4,
    )
    .prop_map(|pieces| pieces.concat())
    .prop_filter("not a name", |name| !name.contains("**"));
    let component = prop_oneof![4 => name, 1 => Just("**".to_owned())];
    let ends = (
        select(&["", "!", "/", "!/"][..]),
        select(&["", "", "/"][..]),
    );
    (ends, vec(component, 1..4))
        .prop_map(|((start, end), components)| start.to_owned() + &components.join("/") + end)
}
