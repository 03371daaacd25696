use vmcell_disk::{Grep, GrepMatch, MatchedLine, WalkOptions};

use crate::sample::{Sample, debugfs};

fn lines(sample: &Sample, path: &str, grep: &Grep) -> Vec<MatchedLine> {
    let disk = sample.open();
    let found = disk.grep(path, grep).unwrap();
    found
        .map(|found| match found.unwrap() {
            GrepMatch::Line(line) => line,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn lines_that_match_are_told_with_their_place() {
    let sample = Sample::new();
    let grep = Grep::new("PASS(word|wd) *=").ignore_case();
    let found = lines(&sample, "/", &grep);
    assert_eq!(found.len(), 1);
    let line = &found[0];
    assert_eq!(line.path.to_str(), Some("etc/secret.conf"));
    assert_eq!((line.number, line.offset), (2, 12));
    assert_eq!(line.text, b"password = hunter2");
    assert_eq!(line.matched, 0..10);
    assert!(!line.is_truncated);

    let literal = Grep::new("println!(\"hello\")").literal();
    let found = lines(
        &sample,
        "src",
        &literal.within(WalkOptions::new().exclude("same.rs")),
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].matched, 4..21);
    let numbers = lines(&sample, "many", &Grep::new("^1?7$"));
    assert_eq!(numbers.len(), 2);
    let error = sample.open().grep("/", &Grep::new("(")).unwrap_err();
    assert_eq!(error.code(), "invalid");
}

#[test]
fn binary_files_are_named_once_and_not_shown() {
    let sample = Sample::new();
    let disk = sample.open();
    let found: Vec<_> = disk
        .grep("data", &Grep::new("middle|(?-u:\\xff)"))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let binary = |path: &str| GrepMatch::Binary { path: path.into() };
    assert_eq!(found, [binary("data/large"), binary("data/sparse")]);
}

#[test]
fn lines_are_found_wherever_pieces_end() {
    let sample = Sample::new();
    let mut text = Vec::new();
    for number in 0..40_000_usize {
        text.extend_from_slice(&vec![b'a'; number % 41]);
        if number % 1000 == 7 {
            text.extend_from_slice(format!("needle {number}").as_bytes());
        }
        text.push(b'\n');
    }
    // A line longer than the maximum, without a newline.
    text.extend_from_slice(&vec![b'x'; 3 << 20]);
    text.extend_from_slice(b"needle at the end");
    let file = sample.file("text", &text);
    debugfs(&sample.image(), &format!("write {file} text\n"));
    let found = lines(&sample, "text", &Grep::new("needle [0-9a-z]+"));
    let expected: Vec<_> = text
        .split(|byte| *byte == b'\n')
        .zip(1..)
        .filter(|(line, _)| line.windows(6).any(|part| part == b"needle"))
        .map(|(_, number)| number)
        .collect();
    let numbers: Vec<_> = found.iter().map(|line| line.number).collect();
    assert_eq!(numbers, expected);
    for line in &found {
        let start = usize::try_from(line.offset).unwrap();
        let matched = &line.text[line.matched.clone()];
        assert!(matched.starts_with(b"needle "), "{line:?}");
        if !line.is_truncated {
            assert_eq!(&text[start..][..line.text.len()], line.text);
        }
    }
    let last = found.last().unwrap();
    assert!(last.is_truncated && last.text.len() <= 4096);
    assert_eq!(last.offset, text.len() as u64 - (3 << 20) - 17);
}
