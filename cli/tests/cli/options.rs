//! Options of `run` for its command.

use std::fs;

use crate::{
    shared_vm::unique,
    vmcell::{READY_AND_WAIT, Vmcell},
};

#[test]
fn user_directory_environment_and_input_are_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let variables = folder.path().join("variables");
    fs::write(
        &variables,
        "# for the test\n\nFIRST=of the file\nSECOND='2'\n",
    )
    .unwrap();
    let input = folder.path().join("input");
    fs::write(&input, "from a file").unwrap();
    let options = [
        "--user",
        "nobody",
        "--cwd",
        "/tmp/new/place",
        "--create-cwd",
        "--env-file",
        variables.to_str().unwrap(),
        "--env",
        "FIRST=of the line",
        "--stdin",
        input.to_str().unwrap(),
    ];
    let script = "id -un; pwd; echo $FIRST, $SECOND; cat";
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    ended.assert_printed("nobody\n/tmp/new/place\nof the line, '2'\nfrom a file");
}

/// Our own standard input stays open.
#[test]
fn a_command_without_input_reads_the_end_of_it() {
    let options = ["--stdin", "none", "--user", "12:34"];
    let ended = Vmcell::run(options, ["sh", "-c", "cat; id -u; id -g"]).finish();
    ended.assert_printed("12\n34\n");
}

#[test]
fn what_the_guest_does_not_have_is_named_and_the_command_not_started() {
    let shared = crate::shared_vm::SharedVm::start("absent");
    for (options, words) in [
        (["--cwd", "/no/such/place"], "working directory"),
        (["--user", "no-such-user"], "no such user"),
        (["--tag", "main"], "a process has this tag"),
    ] {
        let ended = shared.exec(options, ["echo", "started"]);
        ended.assert_failed(126, words);
    }
}

/// All of these fail before a VM boots.
#[test]
fn files_that_cannot_be_used_are_named_with_the_place_of_the_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("variables");
    let path = file.to_str().unwrap();
    for (contents, line) in [
        ("NAME\n", 1),
        ("# fine\n\nA=1\n=secret\n", 4),
        ("A=1\nexport B=secret\n", 2),
    ] {
        fs::write(&file, contents).unwrap();
        let ended = Vmcell::run(["--env-file", path], ["true"]).finish();
        let words = format!("environment file {path}: line {line}: expected NAME=value\n");
        ended.assert_failed(125, &words);
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
    }
    let ended = Vmcell::run(["--env-file", "/no/such/file"], ["true"]).finish();
    ended.assert_failed(125, "environment file /no/such/file: No such file");
    let ended = Vmcell::run(["--stdin", "/no/such/file"], ["true"]).finish();
    ended.assert_failed(125, "standard input /no/such/file: No such file");
    let ended = Vmcell::run(["--json", "--stdin", "/etc"], ["true"]).finish();
    assert_eq!(ended.json()["error"]["code"], "bad-file", "{ended:?}");
    assert_eq!(ended.code(), 125);
}

#[test]
fn an_id_that_is_taken_or_makes_no_sense_is_refused() {
    let id = unique("taken");
    let mut first = Vmcell::run(["--id", &id], READY_AND_WAIT).start();
    assert_eq!(first.line(), "ready\n");
    let second = Vmcell::run(["--id", &id], ["true"]).finish();
    second.assert_failed(125, "runs already: stop it, or choose another id");
    let second = Vmcell::run(["--id", &id, "--json"], ["true"]).finish();
    assert_eq!(second.json()["error"]["code"], "id-taken", "{second:?}");
    let ended = Vmcell::run(["--id", "a/b"], ["true"]).finish();
    ended.assert_failed(125, "cannot be the id of a VM");
}
