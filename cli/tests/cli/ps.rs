//! `vmcell ps`.

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
    process::Signal,
};
use serde_json::{Value, json};

use crate::{
    shared_vm::SharedVm,
    vmcell::{Ended, Vmcell, eventually},
};

/// Returns all rows that contain a word, split into words.
fn rows<'a>(ended: &'a Ended, word: &str) -> Vec<Vec<&'a str>> {
    let rows = ended
        .stdout()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|words| words.contains(&word)).collect()
}

#[test]
fn vms_are_listed_with_what_they_are_made_of() {
    let small = SharedVm::start_with("small", &["--mem-mib", "64"]);
    let large = SharedVm::start_with("large", &["--vcpu-count", "2"]);
    let ended = Vmcell::new(["ps"]).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    let header = "ID OWNER STATE UPTIME VCPUS MEMORY IMAGE";
    let first: Vec<_> = ended
        .stdout()
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(first.join(" "), header);
    for (shared, vcpus, memory) in [(&small, "1", "64"), (&large, "2", "1024")] {
        let found = rows(&ended, &shared.id);
        let [words] = &found[..] else {
            panic!("{ended:?}");
        };
        assert_eq!(words[1], shared.running.pid().to_string());
        assert!(
            words
                .windows(3)
                .any(|words| words == [vcpus, memory, "MiB"]),
            "{words:?}"
        );
        assert!(words.last().unwrap().ends_with(".ext4"), "{words:?}");
    }

    let ended = Vmcell::new(["ps", "--json"]).finish();
    let list = ended.json();
    let vms = list["vms"].as_array().unwrap();
    let vm = vms.iter().find(|vm| vm["id"] == large.id.as_str()).unwrap();
    assert_eq!(vm["owner_pid"], json!(large.running.pid()));
    assert_eq!((&vm["vcpus"], &vm["memory_mib"]), (&json!(2), &json!(1024)));
    assert!(vm["uptime_seconds"].as_f64().unwrap() > 0.0);

    // Each VM has its own processes.
    small.spawn("here", ["sleep", "1000"]);
    assert!(small.process("here").is_some());
    assert!(large.process("here").is_none());
    drop(small);
    let ended = Vmcell::new(["ps"]).finish();
    assert_eq!(rows(&ended, &large.id).len(), 1, "{ended:?}");
}

/// Connects to a VM's socket until its accept queue is full. Closed connections
/// stay in the queue until they are accepted.
fn fill_queue(id: &str) {
    let uid = rustix::process::geteuid().as_raw();
    let name = format!("vmcell/{uid}/{id}");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(errno) => return assert_eq!(errno, Errno::AGAIN),
        }
    }
}

#[test]
fn a_vm_whose_owner_is_stopped_is_listed_as_not_answering() {
    let shared = SharedVm::start("stopped");
    let listed = || {
        let list = Vmcell::new(["ps", "--json"]).finish().json();
        let vms = list["vms"].as_array().unwrap().clone();
        let mut vms = vms.into_iter();
        vms.find(|vm| vm["id"] == shared.id.as_str()).unwrap()
    };
    let owner = json!(shared.running.pid());
    shared.running.signal(Signal::STOP);
    let vm = listed();
    assert_eq!(vm["state"], json!("not-answering"), "{vm}");
    assert_eq!((&vm["owner_pid"], &vm["vcpus"]), (&owner, &Value::Null));
    let ended = Vmcell::new(["ps"]).finish();
    let found = rows(&ended, &shared.id);
    assert_eq!(found[0][1..4], [&*owner.to_string(), "not", "answering"]);
    let ended = shared.exec([], ["true"]);
    ended.assert_failed(125, &format!("(process {owner}) does not answer"));

    fill_queue(&shared.id);
    let vm = listed();
    assert_eq!(vm["state"], json!("not-answering"), "{vm}");
    assert_eq!(vm["owner_pid"], Value::Null);
    let ended = shared.exec([], ["true"]);
    ended.assert_failed(125, "does not answer");

    shared.running.signal(Signal::CONT);
    // It has thousands of connections to accept first.
    assert!(eventually(|| listed()["state"] == json!("running")));
    let vm = listed();
    assert_eq!((&vm["owner_pid"], &vm["vcpus"]), (&owner, &json!(1)));
}

#[test]
fn processes_are_listed_with_what_became_of_them() {
    let shared = SharedVm::start("processes");
    shared.spawn("good", ["sh", "-c", "printf 12345"]);
    shared.spawn("bad", ["sh", "-c", "exit 3"]);
    shared.spawn("lost", ["sh", "-c", "printf 123 >&2; kill -TERM $$"]);
    for tag in ["good", "bad", "lost"] {
        // Returns when the process has ended.
        assert_eq!(shared.cli("logs", [tag, "--follow"]).finish().code(), 0);
    }
    let ended = shared.cli("ps", []).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    for (tag, state, stdout, stderr) in [
        ("main", "running", "6", "0"),
        ("good", "exit code 0", "5", "0"),
        ("bad", "exit code 3", "0", "0"),
        ("lost", "signal 15", "0", "3"),
    ] {
        let found = rows(&ended, tag);
        assert_eq!(found.len(), 1, "{ended:?}");
        let row = found[0].join(" ");
        let (before, after) = row.split_once(&format!(" {tag} no {state} ")).unwrap();
        assert_eq!(before.split(' ').count(), 2, "id and pid: {row}");
        let words: Vec<_> = after.split(' ').collect();
        assert_eq!(words[1..4], [stdout, stderr, "0"], "{row}");
        assert_eq!(words[4], "sh", "{row}");
    }
    let lost = shared.process("lost").unwrap();
    assert_eq!(lost["cause"], json!("signal"), "{lost}");
    assert_eq!(lost["signal"], json!(15));
    assert_eq!(lost["exit_code"], Value::Null);
    assert_eq!(lost["stderr"]["bytes"], json!(3));
    assert_eq!(lost["command"][0], json!("sh"));
}

/// The guest reports the arguments, so they are untrusted.
#[test]
fn a_process_cannot_draw_rows_of_its_own() {
    let shared = SharedVm::start("drawing");
    shared.spawn(
        "sly",
        ["sleep", "1000", "\n7  7  fake  running\x1b[2J\u{202e}"],
    );
    let ended = shared.cli("ps", []).finish();
    assert_eq!(ended.stdout().lines().count(), 3, "{ended:?}");
    assert!(!ended.stdout().contains(['\x1b', '\u{202e}']), "{ended:?}");
    assert!(ended.stdout().contains("fake"), "{ended:?}");
}

#[test]
fn a_vm_that_is_not_there_is_named() {
    let ended = Vmcell::new(["ps", "nobody-has-this"]).finish();
    ended.assert_failed(
        125,
        "no running VM has the id \"nobody-has-this\": `vmcell ps` lists",
    );
    let ended = Vmcell::new(["ps", "nobody-has-this", "--json"]).finish();
    assert_eq!(ended.json()["error"]["code"], json!("no-such-vm"));
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));
}

#[test]
fn what_a_command_left_behind_is_listed_and_can_be_killed() {
    let shared = SharedVm::start("left");
    let leave = "sleep 1000 <&- >&- 2>&- & sleep 1000 <&- >&- 2>&- &";
    for tag in ["tagged", "numbered"] {
        let ended = shared.exec(["--tag", tag], ["sh", "-c", leave]);
        ended.assert_printed("");
    }
    // All of them, and the VM's own command, have executed their program.
    let all = "until [ $(pidof sleep | wc -w) = 5 ]; do :; done";
    shared.exec([], ["sh", "-c", all]).assert_printed("");
    let ended = shared.cli("ps", []).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    let process = shared.process("tagged").unwrap();
    assert_eq!(process["state"], json!("ended"), "{process}");
    assert_eq!(process["exit_code"], json!(0));
    assert_eq!(process["left_more"], json!(false));
    let left = process["left"].as_array().unwrap();
    let state = left.iter().map(|left| {
        assert_eq!(left["name"], json!("sleep"));
        format!(" {}:sleep", left["pid"])
    });
    let state = state.collect::<String>();
    let expected = format!(" tagged no exit code 0, left{state} ");
    let row = rows(&ended, "tagged")[0].join(" ");
    assert!(row.contains(&expected), "{row}");

    shared.cli("kill", ["tagged"]).finish().assert_printed("");
    let pid = &shared.process("numbered").unwrap()["left"][0]["pid"];
    let pid = format!("pid:{pid}");
    shared.cli("kill", [&*pid]).finish().assert_printed("");
    for tag in ["tagged", "numbered"] {
        assert_eq!(shared.process(tag), None);
    }
    let ended = shared.cli("kill", ["tagged"]).finish();
    ended.assert_failed(125, "no such process");
}
