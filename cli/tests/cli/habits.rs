//! Commands and options as people type them who know other tools.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    shared_vm::{SharedVm, unique},
    user::User,
    vmcell::{Vmcell, eventually},
};

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn exec_takes_its_command_without_dashes() {
    let shared = SharedVm::start("no-dashes");
    let ended = shared.cli("exec", ["echo", "-n", "--json"]).finish();
    ended.assert_printed("--json");
    let ended = shared.cli("exec", ["-e", "A=1", "sh", "-c", "echo $A"]);
    ended.finish().assert_printed("1\n");
    let ended = shared.cli("exec", ["--json", "--", "echo", "-n", "x"]);
    assert_eq!(ended.finish().json()["stdout"], "x");
    let ended = shared.cli("exec", ["--detach", "--id-only", "sleep", "1000"]);
    let ended = ended.finish();
    let id = ended.stdout().trim();
    assert!(id.parse::<u32>().is_ok(), "{ended:?}");

    let killed = shared.cli("kill", ["--json", id]).finish();
    assert_eq!(killed.json()["exit"]["cause"], "killed", "{killed:?}");
    let killed = shared.cli("kill", ["--json"]).finish();
    assert_eq!(killed.json()["vm_end"]["reason"], "killed", "{killed:?}");
}

#[test]
fn the_options_of_run_have_the_names_of_other_tools() {
    let name = unique("named");
    let options = [
        "--name", &name, "-m", "256m", "-e", "A=1", "-p", "80", "-i", "--rm",
    ];
    let script = "echo $A; grep MemTotal /proc/meminfo";
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    let (first, memory) = ended.stdout().split_once('\n').unwrap();
    let kib = memory.split_whitespace().nth(1).unwrap();
    let kib: u32 = kib.parse().unwrap();
    assert_eq!(
        (first, (128 << 10..256 << 10).contains(&kib)),
        ("1", true),
        "{ended:?}"
    );
}

#[test]
fn an_environment_that_does_not_exist_is_answered_with_those_that_do() {
    let ended = Vmcell::new(["run", "ubuntu", "--", "true"]).finish();
    ended.assert_failed(125, "`vmcell env list` lists them");
    let listed = Vmcell::new(["env", "list", "--json"]).finish().json();
    assert_eq!(listed["environments"][0]["name"], "base", "{listed}");
    let bytes = listed["environments"][0]["disk_bytes"].as_u64();
    assert!(bytes > Some(0), "{listed}");
    let listed = Vmcell::new(["env", "list"]).finish();
    assert!(listed.stdout().contains("base"), "{listed:?}");
    let version = Vmcell::new(["version"]).finish();
    version.assert_printed(Vmcell::new(["--version"]).finish().stdout());
}

#[test]
fn the_first_ctrl_c_is_for_the_command_and_its_files_are_pulled() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result");
    let pull = format!("/tmp/result={}", result.display());
    let script =
        "trap 'echo saved >/tmp/result; exit 9' INT; echo ready; while :; do sleep 0.1; done";
    let mut running = Vmcell::run(["--pull", &pull], ["sh", "-c", script]).start();
    assert_eq!(running.line(), "ready\n");
    running.signal(Signal::INT);
    assert_eq!(running.finish().code(), 9);
    assert_eq!(fs::read_to_string(&result).unwrap(), "saved\n");

    let script =
        "trap 'echo again' INT; echo part >/tmp/result; echo ready; while :; do sleep 0.1; done";
    let mut running = Vmcell::run(["--pull", &pull], ["sh", "-c", script]).start();
    assert_eq!(running.line(), "ready\n");
    running.signal(Signal::INT);
    assert_eq!(running.line(), "again\n");
    running.signal(Signal::INT);
    assert!(running.ends_within(TIMEOUT));
    assert_eq!(running.finish().code(), 130);
    assert_eq!(fs::read_to_string(&result).unwrap(), "part\n");
}

#[test]
fn a_vm_in_the_background_is_found_by_its_name_and_stopped() {
    let name = unique("detached");
    let script = ["sh", "-c", "echo begun; exec sleep 1000"];
    let ended = Vmcell::run(["-d", "--name", &name], script).finish();
    ended.assert_printed(&format!("{name}\n"));
    let of_vm = |arguments: &[&str]| {
        let (command, rest) = arguments.split_first().unwrap();
        Vmcell::new(
            [*command, name.as_str()]
                .into_iter()
                .chain(rest.iter().copied()),
        )
        .finish()
    };
    assert!(eventually(|| of_vm(&["logs", "main"]).stdout() == "begun\n"));
    of_vm(&["exec", "echo", "here"]).assert_printed("here\n");
    assert_eq!(of_vm(&["stop"]).code(), 0);
    let listed = Vmcell::new(["ps"]).finish();
    assert!(!listed.stdout().contains(&name), "{listed:?}");
}

#[test]
fn a_vm_in_the_background_that_does_not_start_says_why() {
    let ended = Vmcell::run(["-d"], ["/no/such/program"]).finish();
    ended.assert_failed(127, "/no/such/program");
    let taken = SharedVm::start("taken");
    let ended = Vmcell::run(["-d", "--name", &taken.id], ["true"]).finish();
    ended.assert_failed(125, "runs already");
}

#[test]
fn a_command_on_a_terminal_is_used_and_left() {
    let mut user = User::run([
        "run",
        "-it",
        "--",
        "sh",
        "-c",
        "tty; read line; echo \"<$line>\"; exit 4",
    ]);
    user.sees("/dev/pts/");
    user.enters("typed");
    user.sees("<typed>");
    assert_eq!(user.finish().code, 4);
    let ended = Vmcell::run(["-t"], ["true"]).finish();
    ended.assert_failed(125, "is not a terminal");
}

#[test]
fn a_vm_ends_with_its_time_to_live() {
    let mut running = Vmcell::run(
        ["--ttl-seconds", "8"],
        ["sh", "-c", "echo ready; exec sleep 1000"],
    )
    .start();
    assert_eq!(running.line(), "ready\n");
    let ended = running.finish();
    ended.assert_failed(124, "ended after 8 s");
    let bad = Vmcell::run(["--ttl-seconds", "0"], ["true"]).finish();
    assert_eq!(bad.code(), 2, "{bad:?}");
}

#[test]
fn output_that_is_not_text_is_marked_and_complete() {
    let ended = Vmcell::run(["--json"], ["printf", "a\\377b"]).finish();
    let result = ended.json();
    assert_eq!(result["stdout"], "a\u{fffd}b");
    assert_eq!(result["stdout_base64"], json!("Yf9i"));
    assert_eq!(result.get("stderr_base64"), None);
}
