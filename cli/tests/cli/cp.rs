//! `vmcell cp`.

use std::{fs, path::Path, time::SystemTime};

use serde_json::json;

use crate::{
    shared_vm::SharedVm,
    tree::{create_tree, describe},
    vmcell::{Ended, Vmcell},
};

impl SharedVm {
    /// Copies files, in a temporary directory; `:PATH` is a path in the VM.
    fn cp(&self, folder: &Path, source: &str, destination: &str, options: &[&str]) -> Ended {
        let place = |text: &str| match text.strip_prefix(':') {
            Some(path) => format!("{}:{path}", self.id),
            None => folder.join(text).to_str().unwrap().to_owned(),
        };
        let (source, destination) = (place(source), place(destination));
        let words = ["cp", &source, &destination];
        Vmcell::new(words.iter().chain(options)).finish()
    }

    /// Asserts that a copy succeeds and prints nothing.
    #[track_caller]
    fn copied(&self, folder: &Path, source: &str, destination: &str, options: &[&str]) {
        self.cp(folder, source, destination, options)
            .assert_printed("");
    }
}

#[test]
fn a_directory_comes_back_as_it_went() {
    let shared = SharedVm::start("cp");
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    create_tree(&folder.join("tree"));

    // The copy gets the destination's name, or goes into an existing directory.
    shared.copied(folder, "tree", ":there", &[]);
    shared.copied(folder, ":there", "back", &[]);
    let created = describe(&folder.join("tree"));
    assert_eq!(describe(&folder.join("back")), created);
    shared.copied(folder, ":/workspace/there", "back", &[]);
    assert_eq!(describe(&folder.join("back/there")), created);
    shared.copied(folder, "tree/notes", ":", &[]);
    shared.copied(folder, "tree/notes", ":new/folder/", &[]);
    shared.copied(folder, ":new/folder/notes", "renamed", &[]);
    assert_eq!(
        fs::read(folder.join("renamed")).unwrap(),
        b"one\ntwo\nthree\n"
    );
    shared.copied(folder, "tree/.", ":contents", &[]);
    shared.copied(folder, ":contents/src/link", "link", &["--allow-symlink"]);
    assert_eq!(
        fs::read_link(folder.join("link")).unwrap(),
        Path::new("../notes")
    );
    shared
        .cli("ls", [])
        .finish()
        .assert_printed("contents\nnew\nnotes\nthere\n");

    // A second copy has nothing to do, unless options say otherwise.
    let again = |options: &[&str]| {
        let options = [&["--json"], options].concat();
        let ended = shared.cp(folder, "tree/.", ":there", &options);
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
        let parsed = ended.json();
        ["entries", "unchanged", "bytes"].map(|key| parsed[key].as_u64().unwrap())
    };
    let everything = created.len() as u64 + 1;
    assert_eq!(again(&[]), [0, everything, 0]);
    let script = fs::File::options()
        .append(true)
        .open(folder.join("tree/src/run.sh"));
    script.unwrap().set_modified(SystemTime::now()).unwrap();
    assert_eq!(again(&["--checksum"]), [0, everything, 0]);
    let [entries, _, bytes] = again(&[]);
    assert!((1..everything).contains(&entries), "{entries}");
    assert_eq!(bytes, b"#!/bin/sh\n".len() as u64);
    // Existing directories are neither created nor replaced.
    let directories = created
        .values()
        .filter(|text| text.starts_with("directory"));
    let others = created.len() - directories.count();
    let [entries, unchanged, _] = again(&["--all"]);
    assert_eq!((entries, unchanged), (others as u64, 0));
    shared.copied(folder, ":there", "again", &[]);
    assert_eq!(
        describe(&folder.join("again")),
        describe(&folder.join("tree"))
    );
}

#[test]
fn only_what_was_asked_for_is_copied_and_the_rest_is_told() {
    let shared = SharedVm::start("cp-part");
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    create_tree(&folder.join("tree"));
    fs::write(folder.join("ignored"), "# not these\nsrc/deep/\nodd*\r\n").unwrap();
    let ignored = folder.join("ignored");
    let options = [
        "--exclude-from",
        ignored.to_str().unwrap(),
        "--exclude",
        "broken",
        "--owner",
        "nobody",
    ];
    shared.copied(folder, "tree", ":part", &options);
    let listed = shared.cli("ls", ["part", "-R"]).finish();
    listed.assert_printed("empty\nnotes\nsrc\nsrc/link\nsrc/notes\nsrc/run.sh\n");
    let owner = shared.cli("stat", ["part/notes", "--json"]).finish();
    assert_eq!(owner.json()["owner"], json!("nobody"));
    shared.copied(folder, ":part", "included", &["--include", "*.sh"]);
    let paths: Vec<_> = describe(&folder.join("included")).into_keys().collect();
    assert_eq!(paths, ["src", "src/run.sh"].map(std::path::PathBuf::from));

    // What cannot be copied is reported, and the rest is copied.
    let made = shared.exec([], ["mkfifo", "/workspace/part/pi\x1b[2Jpe"]);
    made.assert_printed("");
    let ended = shared.cp(folder, ":part", "without", &[]);
    assert_eq!((ended.code(), ended.stdout()), (0, ""));
    assert!(
        ended.stderr.contains("left out pi\u{fffd}[2Jpe"),
        "{ended:?}"
    );
    let ended = shared.cp(folder, ":part", "without", &["--json"]);
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.json()["left_out"], json!(1), "{ended:?}");
    assert_eq!(
        ended.json()["first_left_out"][0]["path"],
        json!("pi\u{1b}[2Jpe")
    );

    // A guest cannot make us write more than the limit.
    for limit in [["--limit-bytes", "9"], ["--limit-entries", "2"]] {
        let ended = shared.cp(folder, ":part", "limited", &limit);
        ended.assert_failed(125, "goes beyond the limit");
    }
    for (source, destination, options, words) in [
        ("nothing", ":x", &[][..], "there is nothing at"),
        (":nothing", "x", &[], "/workspace/nothing"),
        ("tree", "x", &[], "one of SRC and DST must be ID:PATH"),
        (":part", ":x", &[], "one of SRC and DST must be ID:PATH"),
        (":part", "x", &["--all"], "are for copies into a VM"),
        ("tree", ":x", &["--allow-symlink"], "copies out of a VM"),
        (":part/notes", "tree/notes/x", &[], "tree/notes"),
        ("tree", ":part/notes/x", &[], "part/notes"),
        (
            "tree",
            ":x",
            &["--exclude-from", "/no/file"],
            "exclude file /no/file",
        ),
        ("tree", ":x", &["--owner", "no-such-user"], "no such user"),
        (":part", "x.zip", &["--archive"], "must end with .tar"),
        ("nothing.tar", ":x", &["--archive"], "nothing.tar"),
        ("ignored", ":x", &["--archive"], "bad archive"),
    ] {
        let ended = shared.cp(folder, source, destination, options);
        ended.assert_failed(125, words);
    }
    let ended = shared.cp(folder, ":nothing", "x", &["--json"]);
    assert_eq!(ended.json()["error"]["code"], json!("file"), "{ended:?}");
    assert!(!folder.join("x").exists() && !folder.join("x.zip").exists());
    assert!(!folder.join("limited/src/run.sh").exists());
}

#[test]
fn a_link_of_a_user_of_the_guest_leads_no_copy_into_a_directory_of_root() {
    let shared = SharedVm::start("cp-link");
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    fs::write(folder.join("f"), "root::0:0::/:\n").unwrap();
    let link = "ln -s /etc dir && ln -s /etc/shadow file";
    let options = ["--user", "cell", "--cwd", "/workspace"];
    shared.exec(options, ["sh", "-c", link]).assert_printed("");

    let words = "a symbolic link of another user is on the way";
    for destination in [":dir/x", ":dir/", ":dir/passwd"] {
        let ended = shared.cp(folder, "f", destination, &[]);
        ended.assert_failed(125, words);
        assert!(ended.stderr.contains("workspace/dir: "), "{ended:?}");
    }
    shared
        .cp(folder, ":dir/shadow", "out", &[])
        .assert_failed(125, words);
    shared
        .cli("cat", ["file"])
        .finish()
        .assert_failed(125, words);
    let untouched = "test ! -e /etc/x && test ! -e /etc/f && grep -q root:x:0 /etc/passwd";
    shared.exec([], ["sh", "-c", untouched]).assert_printed("");
    assert!(!folder.join("out").exists());
}

#[test]
fn archives_are_packed_and_unpacked_on_the_way() {
    let shared = SharedVm::start("cp-archive");
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    create_tree(&folder.join("tree"));
    shared.copied(folder, "tree", ":tree", &[]);
    for ending in ["tar", "tar.gz", "tgz", "tar.zst"] {
        let archive = format!("tree.{ending}");
        let unpacked = format!(":{ending}");
        shared.copied(folder, ":tree", &archive, &["--archive"]);
        shared.copied(folder, &archive, &unpacked, &["--archive"]);
        shared.copied(folder, &unpacked, ending, &[]);
        let (back, created) = (folder.join(ending), folder.join("tree"));
        assert_eq!(describe(&back), describe(&created), "{ending}");
    }
    // Without --archive, an archive is copied like any other file.
    shared.copied(folder, "tree.tgz", ":", &[]);
    shared.copied(folder, ":tree.tgz", "same.tgz", &[]);
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("same.tgz") == read("tree.tgz"));

    // A truncated archive is reported, wherever it ends.
    let whole = read("tree.tar.zst");
    for length in [whole.len() / 2, whole.len() - 1] {
        fs::write(folder.join("cut.tar.zst"), &whole[..length]).unwrap();
        let ended = shared.cp(folder, "cut.tar.zst", ":cut", &["--archive"]);
        ended.assert_failed(125, "bad archive");
    }
}
