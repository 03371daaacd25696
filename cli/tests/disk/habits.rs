//! Options and paths as people type them for ls, find, tree and cat.

use std::ffi::OsStr;

use crate::{
    program::{Ended, disk},
    sample::Sample,
};

fn on(sample: &Sample, command: &str, words: &[&str]) -> Ended {
    let image = sample.image();
    let first = [command.as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(words.iter().map(OsStr::new)))
}

#[test]
fn ls_has_the_options_that_everybody_types() {
    let sample = Sample::new();
    let long = on(&sample, "ls", &["-l", "/bin"]).printed();
    assert!(long.contains(" 300000 "), "{long}");
    assert_eq!(on(&sample, "ls", &["-la", "/bin"]).printed(), long);
    assert_eq!(on(&sample, "ls", &["-lA1", "/bin"]).printed(), long);
    let human = on(&sample, "ls", &["-lah", "/bin"]).printed();
    assert!(human.contains(" 293K "), "{human}");
    let human = on(&sample, "ls", &["-lhi", "/bin"]).printed();
    assert!(human.contains(" 293K "), "{human}");
    assert_eq!(on(&sample, "ls", &["-d", "/bin"]).printed(), "/bin\n");
    let itself = on(&sample, "ls", &["-ld", "/bin"]).printed();
    assert!(itself.lines().nth(1).unwrap().starts_with('d'), "{itself}");
    let help = disk(["ls", "--help"]).printed();
    assert!(help.contains("--human-readable"), "{help}");
}

#[test]
fn find_understands_a_single_dash() {
    let sample = Sample::new();
    let found = |words: &[&str]| on(&sample, "find", words).printed();
    let rust = "/src/deep/er/lib.rs\n/src/main.rs\n/src/same.rs\n";
    assert_eq!(found(&["-name", "*.rs"]), rust);
    assert_eq!(found(&["/src", "-iname", "*.RS", "-print"]), rust);
    assert_eq!(found(&["-type", "l,p"]), "/link\n/pipe\n");
    assert_eq!(found(&["-type", "f", "-size", "+1M"]), "/sparse\n");
    assert_eq!(
        found(&["/src", "-maxdepth", "1", "-name", "*.rs", "-print0"]),
        "/src/main.rs\0/src/same.rs\0"
    );
    let long = found(&["-name", "tool", "-ls"]);
    assert!(long.contains(" 300000 "), "{long}");
}

#[test]
fn tree_has_a_level() {
    let sample = Sample::new();
    let level = on(&sample, "tree", &["-L", "1", "/src"]).printed();
    assert!(level.ends_with("1 directory, 3 files\n"), "{level}");
    assert_eq!(on(&sample, "tree", &["-aL1", "/src"]).printed(), level);
}

#[test]
fn a_link_to_nothing_is_listed_and_said_to_lead_nowhere() {
    let sample = Sample::new();
    let image = sample.changed("dangling.ext4", "symlink /lost missing/file\n");
    let on = |command: &str, words: &[&str]| {
        let first = [command.as_ref(), image.as_os_str()];
        disk(first.into_iter().chain(words.iter().map(OsStr::new)))
    };
    assert_eq!(on("ls", &["/lost"]).printed(), "/lost\n");
    let long = on("ls", &["-l", "/lost"]).printed();
    assert!(long.contains("/lost -> missing/file\n"), "{long}");
    assert_eq!(on("find", &["/lost"]).printed(), "/lost\n");
    let nowhere = "/lost is a symlink to missing/file, which does not exist";
    for command in ["cat", "sha256"] {
        on(command, &["/lost"]).assert_failed(1, nowhere);
    }
    on("grep", &["x", "/lost"]).assert_failed(2, nowhere);
    on("tree", &["/lost"]).assert_failed(125, nowhere);
    on("ls", &["/nowhere"]).assert_failed(125, "there is nothing at /nowhere");
}
