//! `vmcell pause` and `vmcell resume`.

use std::time::Duration;

use serde_json::json;

use crate::{shared_vm::SharedVm, vmcell::Vmcell};

fn state(id: &str) -> serde_json::Value {
    let listed = Vmcell::new(["ps", "--json"]).finish().json();
    let mut vms = listed["vms"].as_array().unwrap().iter();
    vms.find(|vm| vm["id"] == id).unwrap()["state"].clone()
}

#[test]
fn a_paused_vm_is_listed_as_such_and_its_commands_wait() {
    let shared = SharedVm::start("paused");
    shared.cli("pause", []).finish().assert_printed("");
    assert_eq!(state(&shared.id), json!("paused"));
    let command = shared.cli("exec", ["--", "echo", "hello"]).start();
    assert!(!command.ends_within(Duration::from_millis(500)));
    let resumed = shared.cli("resume", ["--json"]).finish().json();
    assert_eq!(
        resumed,
        json!({"sandbox_id": shared.id, "state": "running"})
    );
    command.finish().assert_printed("hello\n");
    assert_eq!(state(&shared.id), json!("running"));
}

#[test]
fn commands_are_refused_if_the_user_says_so() {
    let shared = SharedVm::start("refusing");
    let paused = shared.cli("pause", ["--refuse", "--json"]).finish().json();
    assert_eq!(paused, json!({"sandbox_id": shared.id, "state": "paused"}));
    let refused = shared.cli("exec", ["--", "true"]).finish();
    refused.assert_failed(126, "the VM is paused");
    shared.cli("stop", []).finish().assert_printed("");
    let ended = Vmcell::new(["pause", &shared.id]).finish();
    ended.assert_failed(125, "`vmcell ps` lists running VMs");
}
