//! Every promise of the specification is shown by a test or a benchmark that exists.

use std::fs;

use crate::root;

/// A test or a row of a benchmark that the specification names.
#[derive(Debug, PartialEq, Eq)]
enum Evidence<'a> {
    Test { file: &'a str, name: &'a str },
    Row { file: &'a str, text: &'a str },
}

/// Returns the promises with the cell that says what shows them.
fn promises(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter_map(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        row.split_once(" | ")
    });
    rows.filter(|(promise, _)| *promise != "promise").collect()
}

/// Returns what a cell names.
fn evidence(cell: &str) -> Vec<Evidence<'_>> {
    let parts = cell.split("`, `").map(|part| part.trim_matches('`'));
    let parts = parts.filter_map(|part| {
        if let Some((file, text)) = part.split_once(": \"") {
            let text = text.strip_suffix('"')?;
            return Some(Evidence::Row { file, text });
        }
        let (file, name) = part.split_once("::")?;
        Some(Evidence::Test { file, name })
    });
    parts.collect()
}

/// Returns why something that is named does not count.
fn problem(evidence: &Evidence<'_>) -> Option<String> {
    let (Evidence::Test { file, .. } | Evidence::Row { file, .. }) = evidence;
    let Ok(source) = fs::read_to_string(root().join(file)) else {
        return Some(format!("there is no {file}"));
    };
    match evidence {
        Evidence::Test { name, .. } if !has_test(&source, name) => {
            Some(format!("{file} has no test {name}"))
        }
        Evidence::Row { text, .. } if !source.contains(text) => {
            Some(format!("{file} has no row {text:?}"))
        }
        _ => None,
    }
}

/// Whether a source has a function of this name that is a test, and is not ignored.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let Some(place) = lines.iter().position(|line| {
        let signature = line.strip_prefix("async ").unwrap_or(line);
        signature
            .strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    }) else {
        return false;
    };
    let attributes = lines[..place]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#["));
    let attributes: Vec<_> = attributes.collect();
    let is_test = |line: &&&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    attributes.iter().any(is_test) && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

#[test]
fn each_promise_is_shown_by_what_exists() {
    let text = fs::read_to_string(root().join("SPECIFICATION.md")).unwrap();
    let promises = promises(&text);
    assert!(promises.len() > 40, "{promises:?}");
    let mut problems = Vec::new();
    for (promise, cell) in promises {
        let evidence = evidence(cell);
        if evidence.len() != cell.matches("`, `").count() + 1 {
            problems.push(format!("nobody can read what shows this: {promise}"));
        }
        problems.extend(evidence.iter().filter_map(problem));
    }
    assert_eq!(problems, [""; 0]);
}

#[test]
fn what_does_not_exist_is_noticed() {
    let cell = "`a/b.rs::works`, `benches/x.rs: \"start of `it`\"`";
    let expected = [
        Evidence::Test {
            file: "a/b.rs",
            name: "works",
        },
        Evidence::Row {
            file: "benches/x.rs",
            text: "start of `it`",
        },
    ];
    assert_eq!(evidence(cell), expected);
    assert!(expected.iter().all(|evidence| problem(evidence).is_some()));
    let source = "#[test]\nfn works() {}\n#[test]\n#[ignore]\nfn rests() {}\nfn helps() {}\n#[tokio::test(start_paused = true)]\nasync fn waits() {}";
    let found = ["works", "rests", "helps", "waits", "work"].map(|name| has_test(source, name));
    assert_eq!(found, [true, false, false, true, false]);
}
