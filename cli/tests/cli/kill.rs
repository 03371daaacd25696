//! `vmcell kill`.

use std::time::Duration;

use serde_json::json;

use crate::{
    processes::Process,
    shared_vm::{SharedVm, unique},
    vmcell::Vmcell,
};

#[test]
fn a_vm_that_is_killed_is_gone_and_its_run_says_why() {
    let shared = SharedVm::start("killed");
    let vmm = Process::only_child_of(shared.running.pid());
    shared.cli("kill", []).finish().assert_printed("");
    assert!(vmm.ends_within(Duration::ZERO), "the VMM is still there");
    // The id can be used again at once.
    let next = Vmcell::run(["--id", &shared.id], ["echo", "next"]).finish();
    next.assert_printed("next\n");
    let ended = shared.running.finish();
    ended.assert_failed(125, "the VM is gone: it was killed");
}

#[test]
fn a_run_for_machines_tells_them_that_its_vm_was_killed() {
    let id = unique("killed-json");
    let script = "cat > /dev/null; exec sleep 1000";
    let mut running = Vmcell::run(["--id", &id, "--json"], ["sh", "-c", script]).start();
    // With --json nothing is printed before the end. But this is more than all
    // buffers hold, so the command has started to read when it is written.
    let writing = running.write_all_and_close(vec![0; 4 << 20]);
    writing.join().unwrap();
    Vmcell::new(["kill", &id]).finish().assert_printed("");
    let ended = running.finish();
    let error = &ended.json()["error"];
    assert_eq!(error["code"], json!("gone"), "{error}");
    assert_eq!(error["cause"], json!("vm-ended"));
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));
}

#[test]
fn a_process_is_killed_with_all_its_descendants() {
    let shared = SharedVm::start("tree");
    let script = "sleep 1000 & setsid sleep 1000 & echo ready; wait";
    shared.spawn("parent", ["sh", "-c", script]);
    let mut watching = shared.cli("logs", ["parent", "-f"]).start();
    assert_eq!(watching.line(), "ready\n");
    shared.cli("kill", ["parent"]).finish().assert_printed("");
    assert_eq!(watching.finish().code(), 0);
    let process = shared.process("parent").unwrap();
    assert_eq!(process["cause"], json!("killed"), "{process}");
    assert_eq!(process["tree_ended"], json!(true));
    // Only the sleep of the VM's own command is left.
    shared
        .exec([], ["sh", "-c", "pidof sleep | wc -w"])
        .assert_printed("1\n");

    // A process that has ended is not killed again, and cannot receive signals.
    shared.cli("kill", ["parent"]).finish().assert_printed("");
    let ended = shared.cli("kill", ["parent", "-s", "TERM"]).finish();
    ended.assert_failed(125, "the process has ended");
}

#[test]
fn a_signal_is_only_sent() {
    let shared = SharedVm::start("signal");
    let script = "(trap '' HUP USR2; exec sleep 1000) & \
                  trap 'echo hup' HUP; trap 'echo usr2' USR2; \
                  echo ready; while :; do wait; done";
    shared.spawn("trapper", ["sh", "-c", script]);
    let mut watching = shared.cli("logs", ["trapper", "-f"]).start();
    assert_eq!(watching.line(), "ready\n");
    for (signal, word) in [("HUP", "hup\n"), ("sigusr2", "usr2\n"), ("1", "hup\n")] {
        let ended = shared.cli("kill", ["trapper", "--signal", signal]).finish();
        ended.assert_printed("");
        assert_eq!(watching.line(), word);
    }
    assert_eq!(shared.process("trapper").unwrap()["state"], "running");
}

#[test]
fn who_follows_a_log_is_told_that_the_vm_was_killed() {
    let shared = SharedVm::start("followed");
    let mut watching = shared.cli("logs", ["main", "-f"]).start();
    assert_eq!(watching.line(), "ready\n");
    shared.cli("kill", []).finish().assert_printed("");
    watching.finish().assert_failed(125, "the VM is gone");
}

#[test]
fn the_command_of_run_can_be_killed_from_outside() {
    let shared = SharedVm::start("outside");
    shared.cli("kill", ["main"]).finish().assert_printed("");
    shared
        .running
        .finish()
        .assert_failed(137, "the command was killed");
}

#[test]
fn what_is_not_there_cannot_be_killed() {
    let ended = Vmcell::new(["kill", "nobody-has-this"]).finish();
    ended.assert_failed(125, "`vmcell ps` lists running VMs");
    let shared = SharedVm::start("no-kill");
    let ended = shared.cli("kill", ["nothing"]).finish();
    ended.assert_failed(125, "process \"nothing\": no such process");
}
