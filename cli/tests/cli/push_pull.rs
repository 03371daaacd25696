//! `--push` and `--pull` of `vmcell run`.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    tree::{create_tree, describe},
    vmcell::Vmcell,
};

#[test]
fn a_command_that_fails_works_on_what_was_pushed_and_its_results_come_out() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    create_tree(&folder.join("tree"));
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let pulls = [
        format!("result={}", path("result")),
        format!("src={}/", path("below")),
        format!("nothing={}", path("nothing")),
        format!("/etc/hostname={}", path("hostname")),
    ];
    let (tree, script) = (path("tree"), "pwd; tr a-z A-Z < notes > result; exit 3");
    let mut options = vec!["--push", &tree];
    options.extend(pulls.iter().flat_map(|pull| ["--pull", pull]));
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    assert_eq!(
        (ended.code(), ended.stdout()),
        (3, "/workspace\n"),
        "{ended:?}"
    );
    // A missing path does not prevent the other copies.
    assert!(
        ended.stderr.contains("--pull: /workspace/nothing"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert_eq!(
        fs::read(folder.join("result")).unwrap(),
        b"ONE\nTWO\nTHREE\n"
    );
    assert!(folder.join("hostname").exists());
    let (back, pushed) = (
        describe(&folder.join("below/src")),
        describe(&folder.join("tree/src")),
    );
    assert_eq!(back.len(), pushed.len());
    let script = Path::new("run.sh");
    assert_eq!(back.get(script), pushed.get(script));
}

#[test]
fn archives_and_files_are_pushed_in_order_and_a_missing_result_is_a_failure() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    fs::write(folder.join("first"), "first\n").unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let pull = format!(".={}", path("all.d"));
    let options = ["--push", &path("first"), "--cwd", "/", "--pull", &pull];
    let ended = Vmcell::run(options, ["sh", "-c", "pwd; cat /workspace/first"]).finish();
    ended.assert_printed("/\nfirst\n");
    assert_eq!(fs::read(folder.join("all.d/first")).unwrap(), b"first\n");

    let archive = path("packed.tar");
    let packed = std::process::Command::new("tar")
        .args(["-cf", &archive, "-C", &path("all.d"), "."])
        .status();
    assert!(packed.unwrap().success());
    fs::write(folder.join("first"), "second\n").unwrap();
    let pull = format!("nothing={}", path("nothing"));
    let options = [
        "--push",
        &archive,
        "--push",
        &path("first"),
        "--pull",
        &pull,
        "--json",
    ];
    let ended = Vmcell::run(options, ["cat", "first"]).finish();
    // Standard output has nothing but the JSON result.
    assert_eq!(ended.json()["stdout"], json!("second\n"), "{ended:?}");
    assert_eq!(ended.json()["exit_code"], json!(0));
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(
        ended.stderr.contains("--pull: /workspace/nothing"),
        "{ended:?}"
    );
    assert!(!folder.join("nothing").exists());
}

/// All of these fail before a VM boots.
#[test]
fn what_cannot_be_pushed_is_told_at_once() {
    let unbootable = |options: [&str; 2]| {
        let run = Vmcell::run(options, ["true"]);
        run.env("VMCELL_QEMU", "/no/such/program").finish()
    };
    let ended = unbootable(["--push", "/no/such/folder"]);
    ended.assert_failed(125, "--push /no/such/folder: No such file");
    let ended = unbootable(["--push", "/dev/null"]);
    ended.assert_failed(
        125,
        "--push /dev/null: it is neither a directory nor a file",
    );
}
