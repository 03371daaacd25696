//! `vmcell-disk find`.

use std::ffi::OsStr;

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::{ODD_NAMES, Sample},
};

fn find(sample: &Sample, arguments: &[&str]) -> Ended {
    let image = sample.image();
    let first = ["find".as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(arguments.iter().map(OsStr::new)))
}

#[test]
fn entries_are_found_by_what_they_are() {
    let sample = Sample::new();
    let found = |arguments: &[&str]| find(&sample, arguments).printed();
    assert_eq!(
        found(&["--name", "*.rs"]),
        "/src/deep/er/lib.rs\n/src/main.rs\n/src/same.rs\n"
    );
    assert_eq!(
        found(&["/src", "--type", "d"]),
        "/src\n/src/deep\n/src/deep/er\n"
    );
    assert_eq!(found(&["--type", "l", "--type", "p"]), "/link\n/pipe\n");
    assert_eq!(found(&["--type", "f", "--size", "+1m"]), "/sparse\n");
    assert_eq!(
        found(&["--type", "f", "--size", "-1", "/src"]),
        "/src/empty\n"
    );
    assert_eq!(found(&["--size", "300000"]), "/bin/tool\n");
    let old = "/src/main.rs\n/src/same.rs\n";
    assert_eq!(found(&["--older", "2018-01-01"]), old);
    assert_eq!(found(&["--older", "1000d", "--newer", "2017-07-14"]), old);
    assert_eq!(
        found(&["--newer", "2017-07-15T12:00", "--name", "main.rs"]),
        ""
    );
    assert_eq!(found(&["/src", "--depth", "1", "--name", "*.rs"]), old);
}

#[test]
fn paths_come_in_the_form_that_is_wanted() {
    let sample = Sample::new();
    let zero = find(&sample, &["/odd", "--type", "f", "-0"]);
    zero.printed();
    let paths: Vec<_> = zero.0.stdout.split(|byte| *byte == 0).collect();
    assert_eq!(paths.len(), ODD_NAMES.len() + 1);
    assert!(paths.contains(&b"/odd/new\nline".as_slice()), "{zero:?}");
    let long = find(&sample, &["--name", "tool", "-l"]).printed();
    assert!(
        long.lines().nth(1).unwrap().ends_with("  /bin/tool"),
        "{long}"
    );
    let parsed = find(&sample, &["--name", "tool", "--json"]).json();
    assert_eq!(parsed[0]["path"], json!("/bin/tool"));
    assert_eq!(parsed.len(), 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let sample = Sample::new();
    for (arguments, words) in [
        (&["--size", "10x"][..], "expected a number of bytes"),
        (&["--newer", "yesterday"], "expected a date"),
        (&["--type", "x"], "possible values"),
        (&["-0", "--json"], "cannot be used with"),
    ] {
        let ended = find(&sample, arguments);
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stderr().contains(words), "{ended:?}");
    }
    find(&sample, &["--name", "["]).assert_failed(125, "[");
}
