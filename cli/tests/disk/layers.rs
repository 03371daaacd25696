//! `vmcell-disk child`, `seal` and `flatten`, and the directories of backing
//! files.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::Sample,
};

fn on(task: &str, first: &Path, second: &Path, more: &[&str]) -> Ended {
    let paths = [task.as_ref(), first.as_os_str(), second.as_os_str()];
    disk(
        paths
            .into_iter()
            .chain(more.iter().map(std::ffi::OsStr::new)),
    )
}

#[test]
fn a_child_reads_as_its_base_and_flattens_to_it() {
    let sample = Sample::new();
    let (base, child) = (sample.image(), sample.path("child.qcow2"));
    let sealed = disk(["seal".as_ref(), base.as_os_str(), "--json".as_ref()]).json();
    assert_eq!(sealed[0]["sealed"], json!(true));
    assert_eq!(fs::metadata(&base).unwrap().permissions().mode() & 0o222, 0);
    on("child", &base, &child, &[]).printed();
    let listed = |image: &Path| disk(["ls".as_ref(), image.as_os_str(), "-lR".as_ref()]).printed();
    assert_eq!(listed(&child), listed(&base));
    let parsed = disk(["info".as_ref(), child.as_os_str(), "--json".as_ref()]).json();
    let layers = &parsed[0]["layers"];
    assert_eq!(layers[0]["format"], json!("qcow2"));
    assert_eq!(layers[1]["sealed"], json!(true));

    let flat = sample.path("flat.ext4");
    let parsed = on("flatten", &child, &flat, &["--json"]).json();
    assert_eq!(parsed[0]["size"], json!(32 << 20));
    assert!(fs::read(&flat).unwrap() == fs::read(&base).unwrap());
    let grandchild = sample.path("grandchild.qcow2");
    let parsed = on("child", &child, &grandchild, &["--json"]).json();
    assert_eq!(parsed[0]["format"], json!("qcow2"));
    assert_eq!(on("diff", &flat, &grandchild, &[]).printed(), "");
}

#[test]
fn nothing_is_replaced_and_nothing_half_made_is_left() {
    let sample = Sample::new();
    let (base, there) = (sample.image(), sample.path("there"));
    fs::write(&there, "mine").unwrap();
    let before = sample.count();
    for task in ["child", "flatten"] {
        on(task, &base, &there, &[]).assert_failed(125, "exists already");
        let nowhere = sample.path("no/where");
        on(task, &base, &nowhere, &[]).assert_failed(125, "cannot write");
    }
    let flat = sample.path("flat");
    let ended = on("flatten", &base, &flat, &["--limit-bytes", "64k"]);
    ended.assert_failed(125, "--limit-bytes allows more");
    let ended = on("flatten", &sample.path("none"), &flat, &["--json"]);
    assert_eq!((ended.code(), ended.stderr().as_str()), (125, ""));
    assert_eq!(ended.json()[0]["error"]["code"], json!("disk-image"));
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    assert_eq!(sample.count(), before);
}

#[test]
fn a_base_elsewhere_is_read_if_its_folder_is_allowed() {
    let sample = Sample::new();
    let folder = sample.path("vms");
    fs::create_dir(&folder).unwrap();
    let child = folder.join("child.qcow2");
    on("child", &sample.image(), &child, &[]).printed();
    let ended = disk(["ls".as_ref(), child.as_os_str()]);
    let bases = sample.image().parent().unwrap().canonicalize().unwrap();
    ended.assert_failed(125, &format!("allow it with --allow-backing {bases:?}"));
    let allow = ["--allow-backing".as_ref(), bases.as_os_str()];
    let listed = ["ls".as_ref(), child.as_os_str(), "/etc".as_ref()];
    let ended = disk(listed.into_iter().chain(allow));
    assert_eq!(ended.printed(), "group\nsecret.conf\n");
}

#[test]
fn a_raw_disk_that_looks_like_qcow2_is_what_the_user_says() {
    let sample = Sample::new();
    let image = sample.path("guest.raw");
    let mut bytes = fs::read(sample.image()).unwrap();
    // The first KiB of the file system is not used by ext4.
    bytes[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
    fs::write(&image, bytes).unwrap();
    let ended = disk(["ls".as_ref(), image.as_os_str()]);
    ended.assert_failed(125, "is damaged");
    let raw = ["ls", "/src/deep", "--format", "raw"].map(std::ffi::OsStr::new);
    let ended = disk([raw[0], image.as_os_str(), raw[1], raw[2], raw[3]]);
    assert_eq!(ended.printed(), "er\n");
}
