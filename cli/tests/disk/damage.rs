//! Damaged disks.

use std::{ffi::OsStr, path::Path};

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::{Sample, run, tool},
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
