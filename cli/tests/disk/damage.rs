//! Damaged disks.

use std::{ffi::OsStr, path::Path};

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::{Sample, run, tool},
    sample_image::debugfs,
};

fn on(task: &str, image: &Path, more: &[&str]) -> Ended {
    let first = [task.as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(more.iter().map(OsStr::new)))
}

#[test]
fn what_is_damaged_is_said_and_its_neighbours_are_told() {
    let sample = Sample::new();
    let image = sample.changed("damaged.ext4", "clri /etc/secret.conf\n");
    let listed = on("ls", &image, &["/etc"]);
    listed.assert_failed(1, "etc/secret.conf");
    assert_eq!(listed.stdout(), "group\n");
    let drawn = on("tree", &image, &["/etc"]);
    drawn.assert_failed(1, "etc/secret.conf");
    assert!(drawn.stdout().contains("group\n"), "{drawn:?}");
    let found = on("find", &image, &["--name", "group", "-l"]);
    assert_eq!((found.code(), found.stdout().lines().count()), (1, 2));
    let searched = on("grep", &image, &["root"]);
    assert_eq!(
        (searched.code(), searched.stdout().as_str()),
        (2, "/etc/group:root:x:0:\n")
    );
    let used = on("du", &image, &["/etc", "-b"]);
    used.assert_failed(1, ": one entry could not be read");
    assert_eq!(used.stdout(), "10\t/etc\n");
    let summed = on("sha256", &image, &["/etc"]);
    assert_eq!((summed.code(), summed.stdout().lines().count()), (1, 1));
    let out = sample.path("out");
    let exported = on("export", &image, &["/etc", out.to_str().unwrap()]);
    exported.assert_failed(1, "secret.conf");
    assert!(out.join("group").is_file());
    let base = sample.image();
    let compared = on("diff", &base, &[image.to_str().unwrap(), "--name-status"]);
    compared.assert_failed(2, "secret.conf");

    let as_json = on("ls", &image, &["/etc", "--json"]);
    assert_eq!((as_json.code(), as_json.stderr().as_str()), (1, ""));
    let problem = as_json
        .json()
        .into_iter()
        .find_map(|line| line.get("problem").cloned());
    assert_eq!(problem.unwrap()["path"], json!("/etc/secret.conf"));
}

#[test]
fn only_the_first_of_many_problems_are_told_one_by_one() {
    let sample = Sample::new();
    let tree = sample.tree();
    let mut commands = String::new();
    for number in 0..50 {
        let path = format!("many/{number}");
        std::fs::create_dir_all(tree.join("many")).unwrap();
        std::fs::write(tree.join(&path), "x").unwrap();
        commands += &format!("clri /{path}\n");
    }
    sample.make(&tree, "base.ext4");
    let image = sample.changed("damaged.ext4", &commands);
    let listed = on("ls", &image, &["/many"]);
    listed.assert_failed(1, "30 more entries could not be read");
    assert_eq!(listed.stderr().lines().count(), 20 + 1);
    let parsed = on("ls", &image, &["/many", "--json"]).json();
    assert_eq!(parsed.len(), 50);
}

#[test]
fn names_in_problems_carry_no_control_bytes() {
    let sample = Sample::new();
    let inode = on("ls", &sample.image(), &["-i", "/odd"]).stdout();
    let inode = inode.split(' ').next().unwrap().to_owned();
    let mut commands = String::new();
    for number in 0..4 {
        let first: u64 = inode.parse().unwrap();
        commands += &format!("clri <{}>\n", first - 3 + number);
    }
    let image = sample.changed("damaged.ext4", &commands);
    for task in ["ls", "tree", "grep", "sha256", "stat"] {
        let more = if task == "grep" {
            &["x", "/odd"][..]
        } else {
            &["/odd"]
        };
        let said = on(task, &image, more).stderr();
        let is_harmless = |letter: char| !letter.is_control() || letter == '\n';
        assert!(said.chars().all(is_harmless), "{task}: {said:?}");
    }
}

#[test]
fn a_broken_superblock_has_a_copy() {
    let sample = Sample::new();
    let image = sample.path("broken.ext4");
    let mut command = tool("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-b", "1024", "-d"]);
    run(command.arg(sample.tree()).arg(&image).arg("32M"));
    let mut bytes = std::fs::read(&image).unwrap();
    bytes[1024 + 4] ^= 0xff;
    std::fs::write(&image, bytes).unwrap();
    on("ls", &image, &["/src/deep"])
        .assert_failed(125, "--backup-superblock reads the backup copy");
    let ended = on("ls", &image, &["/src/deep", "--backup-superblock"]);
    assert_eq!(ended.stdout(), "er\n", "{ended:?}");
}

/// The commands that read a file system, with the exit code for damage.
fn all_commands(sample: &Sample) -> Vec<(&'static str, Vec<String>, i32)> {
    let path = |name: &str| sample.path(name).to_str().unwrap().to_owned();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        ("ls", words(&["/"]), 1),
        ("ls", words(&["-l"]), 1),
        ("tree", words(&[]), 1),
        ("cat", words(&["/etc/group"]), 1),
        ("stat", words(&["/etc/group"]), 1),
        ("find", words(&["--name", "group"]), 1),
        ("grep", words(&["root"]), 2),
        ("du", words(&["-s"]), 1),
        ("sha256", words(&["/etc"]), 1),
        ("export", words(&["/etc", &path("exported")]), 1),
        ("diff", words(&[&path("base.ext4")]), 2),
        ("info", words(&[]), 1),
    ]
}

#[test]
fn every_command_tells_of_a_journal_that_could_not_be_replayed() {
    let sample = Sample::new();
    let image = sample.path("journal.ext4");
    std::fs::copy(sample.image(), &image).unwrap();
    // An unused block, and contents that are found again below.
    let copy = sample.path("copy");
    std::fs::write(&copy, [0x5a; 4096]).unwrap();
    let write = format!("jo -c -v 3\njw -b 8190 {}\njc\n", copy.display());
    debugfs(&image, &write);
    on("ls", &image, &[]).printed();

    let mut bytes = std::fs::read(&image).unwrap();
    let place = bytes.chunks(4096).position(|block| block == [0x5a; 4096]);
    bytes[place.unwrap() * 4096] ^= 1;
    std::fs::write(&image, bytes).unwrap();
    for (command, words, code) in all_commands(&sample) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let ended = on(command, &image, &words);
        ended.assert_failed(code, "the journal of inode 8 in block 8190 is damaged");
        ended.assert_failed(code, "--ignore-journal");
        assert!(command == "diff" || command == "export" || !ended.stdout().is_empty());
    }
    let parsed = on("ls", &image, &["--json"]).json();
    assert_eq!(parsed[0]["problem"]["code"], json!("damaged"));
    on("ls", &image, &["--ignore-journal"]).printed();
    on("ls", &image, &["--ignore-checksums"]).printed();
}

#[test]
fn every_command_tells_of_a_file_that_the_kernel_refuses() {
    let sample = Sample::new();
    // A second extent before the first one, in a file that had one extent.
    let image = sample.changed(
        "extents.ext4",
        "sif /etc/group block[0] 0x0002f30a\nsif /etc/group block[3] 9\n\
         sif /etc/group block[7] 1\nsif /etc/group block[8] 8000\n",
    );
    for (command, words, code) in all_commands(&sample) {
        if command == "info" || words == ["/"] || words == ["-l"] {
            continue;
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let ended = on(command, &image, &words);
        let words = match command {
            "du" => "one entry could not be read",
            _ => "etc/group is damaged",
        };
        ended.assert_failed(code, words);
    }
    on("ls", &image, &["-l", "/etc"]).assert_failed(1, "parts are out of order");
}

#[test]
fn a_superblock_of_zeros_has_a_copy() {
    let sample = Sample::new();
    let image = sample.path("zeroed.ext4");
    let mut command = tool("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-b", "1024", "-d"]);
    run(command.arg(sample.tree()).arg(&image).arg("32M"));
    let mut bytes = std::fs::read(&image).unwrap();
    bytes[1024..2048].fill(0);
    std::fs::write(&image, &bytes).unwrap();
    let advice = "--backup-superblock reads the backup copy";
    on("ls", &image, &["/src/deep"]).assert_failed(125, advice);
    let ended = on("ls", &image, &["/src/deep", "--backup-superblock"]);
    assert_eq!(ended.printed(), "er\n");
    // The copy in group 1 is damaged as well: the next one is in group 3.
    let second = (8 * 1024 + 1) * 1024;
    bytes[second..second + 1024].fill(0);
    std::fs::write(&image, &bytes).unwrap();
    on("ls", &image, &["/src/deep"]).assert_failed(125, advice);
    let ended = on("ls", &image, &["/src/deep", "--backup-superblock"]);
    assert_eq!(ended.printed(), "er\n");
}

#[test]
fn a_damaged_journal_names_the_option_that_does_without_it() {
    let sample = Sample::new();
    let image = sample.changed("journal.ext4", "feature needs_recovery\nsif <8> mode 0\n");
    on("ls", &image, &[]).assert_failed(125, "--ignore-journal");
    on("ls", &image, &["--ignore-journal"]).printed();
}

#[test]
fn the_sums_of_a_root_that_is_no_directory_are_not_printed() {
    let sample = Sample::new();
    let image = sample.changed("root.ext4", "sif <2> mode 0100644\n");
    let ended = on("sha256", &image, &["/"]);
    ended.assert_failed(1, "/ is damaged");
    assert_eq!(ended.stdout(), "");
}
