//! `vmcell-disk ls`.

use std::ffi::OsStr;

use serde_json::{Value, json};

use crate::{
    program::{Ended, disk},
    sample::{ODD_NAMES, Sample},
};

fn ls(sample: &Sample, arguments: &[&str]) -> Ended {
    let image = sample.image();
    let first = ["ls".as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(arguments.iter().map(OsStr::new)))
}

#[test]
fn directories_are_listed_as_far_as_asked() {
    let sample = Sample::new();
    let list = |arguments: &[&str]| ls(&sample, arguments).printed();
    assert_eq!(
        list(&["/"]),
        "bin\netc\nlink\nlost+found\nodd\npipe\nsparse\nsrc\n"
    );
    let src = "deep\nempty\nmain.rs\nsame.rs\n";
    for path in ["src", "/src", "//src/./", "bin/../src"] {
        assert_eq!(list(&[path, "--depth", "1"]), src, "{path}");
    }
    assert_eq!(
        list(&["-R", "/src"]),
        "deep\ndeep/er\ndeep/er/lib.rs\nempty\nmain.rs\nsame.rs\n"
    );
    assert_eq!(
        list(&["--depth", "2", "/src"]),
        "deep\ndeep/er\nempty\nmain.rs\nsame.rs\n"
    );
    assert_eq!(
        list(&["--glob", "**/*.rs"]),
        "src/deep/er/lib.rs\nsrc/main.rs\nsrc/same.rs\n"
    );
    assert_eq!(list(&["/etc/group"]), "/etc/group\n");
    assert_eq!(list(&["/link"]), "/link\n");
    let mut unsorted: Vec<_> = list(&["-U", "/src"]).lines().map(str::to_owned).collect();
    unsorted.sort();
    assert_eq!(unsorted.join("\n") + "\n", src);
}

#[test]
fn into_a_pipe_names_go_as_they_are() {
    let sample = Sample::new();
    let ended = ls(&sample, &["/odd"]);
    ended.printed();
    for name in ODD_NAMES {
        let mut places = ended.0.stdout.windows(name.len());
        assert!(places.any(|place| place == name), "{ended:?}");
    }
}

#[test]
fn a_long_listing_has_the_columns_of_vmcell_ls() {
    let sample = Sample::new();
    let text = ls(&sample, &["-l", "/src"]).printed();
    let rows: Vec<_> = text.lines().collect();
    assert!(rows[0].starts_with("MODE        LINKS  OWNER"), "{text}");
    assert!(rows[0].ends_with("MODIFIED (UTC)       NAME"), "{text}");
    assert_eq!(rows.len(), 1 + 4);
    let main = rows.iter().find(|row| row.ends_with("  main.rs")).unwrap();
    assert!(main.starts_with("-rw-r--r--  2      "), "{main}");
    assert!(main.contains(" 2017-07-14 02:40:00 "), "{main}");
    let text = ls(&sample, &["-l"]).printed();
    assert!(text.contains("  link -> etc/group\n"), "{text}");
    // Long listings are also printed this way into a file.
    let text = ls(&sample, &["-l", "/odd"]).printed();
    assert!(!text.contains('\x1b'), "{text:?}");
    assert_eq!(text.lines().count(), 1 + ODD_NAMES.len());
}

#[test]
fn inodes_are_told_if_asked_for() {
    let sample = Sample::new();
    let names = ls(&sample, &["-i", "/src"]).printed();
    let number = |name: &str| {
        let line = names.lines().find(|line| line.ends_with(name)).unwrap();
        line.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(number("main.rs"), number("same.rs"));
    let long = ls(&sample, &["-li", "/src"]).printed();
    assert!(long.starts_with("INODE  MODE "), "{long}");
    let start = format!("\n{}", number("main.rs"));
    assert!(long.contains(&start), "{long}");
}

#[test]
fn machines_get_an_object_for_each_entry() {
    let sample = Sample::new();
    let entries = ls(&sample, &["-R", "--json"]).json();
    let find = |path: &str| {
        let mut entries = entries.iter();
        entries.find(|entry| entry["path"] == path).unwrap()
    };
    let main = find("/src/main.rs");
    for (key, value) in [
        ("name", json!("main.rs")),
        ("type", json!("file")),
        ("size", json!(27)),
        ("mode", json!("0644")),
        ("permissions", json!("-rw-r--r--")),
        ("links", json!(2)),
        ("modified", json!("2017-07-14T02:40:00.000000000Z")),
        ("target", Value::Null),
    ] {
        assert_eq!(main[key], value, "{key}");
    }
    assert_eq!(find("/link")["target"], json!("etc/group"));
    assert_eq!(find("/pipe")["type"], json!("fifo"));
    let odd = find("/odd/bad\u{fffd}");
    assert_eq!(odd["name_bytes"], json!("626164ff"));
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let sample = Sample::new();
    ls(&sample, &["/nowhere"]).assert_failed(125, "there is nothing at /nowhere: check the path");
    ls(&sample, &["/etc/group/below"]).assert_failed(125, "is not a directory");
    let ended = ls(&sample, &["/nowhere", "--json"]);
    assert_eq!((ended.code(), ended.stderr().as_str()), (125, ""));
    assert_eq!(ended.json()[0]["error"]["code"], json!("not-found"));
    let missing = sample.path("no.ext4");
    disk(["ls".as_ref(), missing.as_os_str()]).assert_failed(125, "check the path");
    let tree = sample.tree();
    disk(["ls".as_ref(), tree.as_os_str()]).assert_failed(125, "is not a regular file");
    ls(&sample, &["--limit-entries", "12", "-R"]).assert_failed(1, "with --limit-entries N");
}
