//! `vmcell-disk grep`.

use std::ffi::OsStr;

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::Sample,
};

fn grep(sample: &Sample, arguments: &[&str]) -> Ended {
    let image = sample.image();
    let first = ["grep".as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(arguments.iter().map(OsStr::new)))
}

#[test]
fn lines_are_told_as_grep_tells_them() {
    let sample = Sample::new();
    let found = |arguments: &[&str]| grep(&sample, arguments).printed();
    assert_eq!(
        found(&["-n", "pass.*[0-9]"]),
        "/etc/secret.conf:2:password = hunter2\n"
    );
    // For a single file, no file name is printed.
    assert_eq!(found(&["-i", "KEY", "/etc/secret.conf"]), "key = value\n");
    assert_eq!(
        found(&["-F", "()", "/src", "-l"]),
        "/src/main.rs\n/src/same.rs\n"
    );
    assert_eq!(found(&["-c", "=", "/etc"]), "/etc/secret.conf:2\n");
    assert_eq!(found(&["-c", "=", "/etc/secret.conf"]), "2\n");
    assert_eq!(
        found(&["-m", "1", "=", "/etc"]),
        "/etc/secret.conf:key = value\n"
    );
    assert_eq!(
        found(&[".", "/etc/group", "/etc/secret.conf", "--max-count", "1"]),
        "/etc/group:root:x:0:\n/etc/secret.conf:key = value\n"
    );
    assert_eq!(
        found(&["li", "--glob", "src/**"]),
        "/src/deep/er/lib.rs://! A library.\n"
    );
}

#[test]
fn exit_codes_are_those_of_grep() {
    let sample = Sample::new();
    let ended = grep(&sample, &["nothing has this"]);
    assert_eq!((ended.code(), ended.stderr().as_str()), (1, ""));
    let ended = grep(&sample, &["key", "/nowhere", "/etc"]);
    ended.assert_failed(2, "nothing at /nowhere");
    assert_eq!(ended.stdout(), "/etc/secret.conf:key = value\n");
    grep(&sample, &["nothing has this", "/nowhere"]).assert_failed(2, "/nowhere");
    grep(&sample, &["("]).assert_failed(125, "unclosed group");
}

#[test]
fn a_binary_file_is_only_named() {
    let sample = Sample::new();
    let ended = grep(&sample, &["(?-u:\\xff)", "/bin"]);
    assert_eq!((ended.code(), ended.stdout().as_str()), (0, ""));
    assert_eq!(
        ended.stderr(),
        "vmcell-disk: /bin/tool: binary file matches\n"
    );
    assert_eq!(
        grep(&sample, &["-l", "(?-u:\\xff)", "/bin"]).printed(),
        "/bin/tool\n"
    );
}

#[test]
fn all_matching_lines_of_a_binary_file_are_counted() {
    let sample = Sample::new();
    let file = sample.path("binary");
    std::fs::write(&file, b"needle\0\nneedle needle\nother\n\0needle\n").unwrap();
    let write = format!("write {} binary\n", file.display());
    crate::sample_image::debugfs(&sample.image(), &write);
    assert_eq!(grep(&sample, &["-c", "needle", "/binary"]).printed(), "3\n");
    let two = grep(&sample, &["-c", "-m", "2", "needle", "/binary"]);
    assert_eq!(two.printed(), "2\n");
    let named = grep(&sample, &["needle", "/binary"]);
    assert_eq!(
        named.stderr(),
        "vmcell-disk: /binary: binary file matches\n"
    );
}

#[test]
fn machines_are_told_where_a_line_is() {
    let sample = Sample::new();
    let parsed = grep(&sample, &["word", "--json"]).json();
    let expected = json!({
        "path": "/etc/secret.conf",
        "line": 2,
        "offset": 12,
        "text": "password = hunter2",
        "matched": [4, 8],
        "cut": false,
        "binary": false,
    });
    assert_eq!(parsed, [expected]);
    let parsed = grep(&sample, &["=", "-c", "--json", "/nowhere", "/etc"]).json();
    assert_eq!(parsed[0]["problem"]["code"], json!("not-found"));
    assert_eq!(parsed[1], json!({ "path": "/etc/secret.conf", "count": 2 }));
}
