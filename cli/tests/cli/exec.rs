//! `vmcell exec`: commands in the VM of another program.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::{
    shared_vm::SharedVm,
    vmcell::{READY_AND_WAIT, Vmcell},
};

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn a_command_runs_there_as_it_would_with_run() {
    let shared = SharedVm::start("exec");
    let script = "echo out; echo err >&2; hostname > /tmp/trace; cat; exit 37";
    let mut running = Vmcell::exec(&shared.id, [], ["sh", "-c", script]).start();
    let writing = running.write_all_and_close(b"typed".to_vec());
    let ended = running.finish();
    writing.join().unwrap();
    assert_eq!(
        (ended.stdout(), ended.stderr.as_str()),
        ("out\ntyped", "err\n")
    );
    assert_eq!(ended.code(), 37);
    // Every exec runs in the same VM.
    shared
        .exec([], ["cat", "/tmp/trace"])
        .assert_printed("vmcell\n");

    let options = ["--user", "nobody", "--cwd", "/tmp", "--env", "A=b c"];
    let ended = shared.exec(options, ["sh", "-c", "id -un; pwd; echo $A"]);
    ended.assert_printed("nobody\n/tmp\nb c\n");

    let ended = shared.exec(["--json"], ["sh", "-c", "echo out; kill -SEGV $$"]);
    let result = ended.json();
    assert_eq!(result["sandbox_id"], json!(shared.id));
    assert_eq!(result["cause"], json!("signal"), "{result}");
    assert_eq!(result["signal"], json!(11));
    assert_eq!(result["stdout"], json!("out\n"));
    assert_eq!(ended.code(), 128 + 11);

    let ended = shared.exec([], ["no-such-program"]);
    ended.assert_failed(127, "no-such-program");
}

#[test]
fn a_command_that_was_ended_is_gone_when_exec_returns() {
    let shared = SharedVm::start("ended");
    let script = ["sh", "-c", "echo begun; exec sleep 1000"];
    let ended = shared.exec(["--timeout-seconds", "1", "--tag", "slow"], script);
    assert_eq!(ended.code(), 124, "{ended:?}");
    assert_eq!(ended.stdout(), "begun\n");
    assert_eq!(ended.stderr, "vmcell: timed out after 1 s\n");
    assert_eq!(shared.process("slow"), None);

    let ended = shared.exec(["--max-output-bytes", "1", "--tag", "loud"], ["yes"]);
    assert_eq!(ended.code(), 153, "{ended:?}");
    assert_eq!(shared.process("loud"), None);

    let mut running = Vmcell::exec(&shared.id, ["--tag", "unread"], ["yes"]).start();
    assert_eq!(running.line(), "y\n");
    running.close_stdout();
    assert_eq!(running.finish().code(), 141);
    assert_eq!(shared.process("unread"), None);
}

#[test]
fn ctrl_c_ends_the_command_and_nothing_else() {
    let shared = SharedVm::start("ctrl-c");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut running = Vmcell::exec(&shared.id, ["--tag", "it"], READY_AND_WAIT).start();
        assert_eq!(running.line(), "ready\n");
        assert_eq!(shared.process("it").unwrap()["state"], "running");
        running.signal(signal);
        assert!(running.ends_within(TIMEOUT), "{signal:?} does not end it");
        let ended = running.finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (code, ""));
        assert_eq!(shared.process("it"), None);
    }
    assert_eq!(shared.process("main").unwrap()["state"], "running");
    shared
        .exec([], ["echo", "still here"])
        .assert_printed("still here\n");
}

/// The killed process cannot send a last message.
#[test]
fn a_command_ends_with_an_exec_that_was_killed() {
    let shared = SharedVm::start("orphan");
    let mut running = Vmcell::exec(&shared.id, ["--tag", "it"], READY_AND_WAIT).start();
    assert_eq!(running.line(), "ready\n");
    let mut watching = shared.cli("logs", ["it", "--follow"]).start();
    assert_eq!(watching.line(), "ready\n");
    running.signal(Signal::KILL);
    // Ends when the process ends.
    assert_eq!(watching.finish().code(), 0);
    assert_eq!(shared.process("main").unwrap()["state"], "running");
}

#[test]
fn two_commands_run_at_once_in_one_vm() {
    let shared = SharedVm::start("two");
    let script = "echo $$; read line; echo $line";
    let mut both = [0, 1].map(|_| Vmcell::exec(&shared.id, [], ["sh", "-c", script]).start());
    let pids = both.each_mut().map(|running| running.line());
    assert_ne!(pids[0], pids[1]);
    for (mut running, word) in both.into_iter().zip(["one", "two"]) {
        let writing = running.write_all_and_close(format!("{word}\n").into_bytes());
        let ended = running.finish();
        writing.join().unwrap();
        ended.assert_printed(&format!("{word}\n"));
    }
}

#[test]
fn a_command_in_the_background_goes_on_without_us() {
    let shared = SharedVm::start("detached");
    let ended = shared.exec(["--detach"], READY_AND_WAIT);
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    let tag = ended.stdout().trim_end();
    assert_eq!(ended.stdout(), format!("{tag}\n"));
    let process = shared.process(tag).unwrap();
    assert_eq!(process["state"], "running", "{process}");
    assert_eq!(process["background"], json!(true));

    let ended = shared.exec(["-d", "--json", "--tag", "web"], READY_AND_WAIT);
    let spawned = ended.json();
    let process = shared.process("web").unwrap();
    for key in ["id", "pid", "tag"] {
        assert_eq!(spawned[key], process[key], "{spawned}");
    }
    let ended = shared.exec(["--detach"], ["no-such-program"]);
    ended.assert_failed(127, "no-such-program");
}

#[test]
fn the_end_of_the_vm_is_told() {
    let shared = SharedVm::start("abandoned");
    let mut running = Vmcell::exec(&shared.id, [], READY_AND_WAIT).start();
    assert_eq!(running.line(), "ready\n");
    let mut as_json = Vmcell::exec(&shared.id, ["--json"], ["cat"]).start();
    let writing = as_json.write_all_and_close(Vec::new());
    assert_eq!(as_json.finish().json()["cause"], json!("code"));
    writing.join().unwrap();
    let id = shared.id.clone();
    drop(shared);
    running.finish().assert_failed(125, "the VM is gone");
    Vmcell::exec(&id, [], ["true"])
        .finish()
        .assert_failed(125, "`vmcell ps` lists running VMs");
}
