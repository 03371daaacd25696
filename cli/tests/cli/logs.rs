//! `vmcell logs`.

use serde_json::json;

use crate::shared_vm::SharedVm;

#[test]
fn what_was_printed_so_far_comes_apart_and_the_rest_with_follow() {
    let shared = SharedVm::start("logs");
    // It continues on a signal.
    let script = "echo one; echo two >&2; trap 'echo three; exit 0' USR1; \
                  echo ready; sleep 1000 > /dev/null 2>&1 & wait";
    shared.spawn("talker", ["sh", "-c", script]);
    let mut following = shared.cli("logs", ["talker", "--follow"]).start();
    assert_eq!(following.line(), "one\n");
    assert_eq!(following.line(), "ready\n");

    let number = shared.process("talker").unwrap();
    let names = [
        "talker".to_owned(),
        number["id"].to_string(),
        format!("pid:{}", number["pid"]),
    ];
    for name in &names {
        let ended = shared.cli("logs", [name.as_str()]).finish();
        assert_eq!(ended.stdout(), "one\nready\n", "{name}");
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, "two\n"));
    }
    let ended = shared.cli("logs", ["talker", "--json"]).finish();
    let log = ended.json();
    assert_eq!(log["sandbox_id"], json!(shared.id));
    assert_eq!(log["process"]["state"], json!("running"));
    assert_eq!(log["stdout"], json!("one\nready\n"));
    assert_eq!(log["stderr"], json!("two\n"));
    assert_eq!(log["stdout_dropped_bytes"], json!(0));

    let as_json = shared.cli("logs", ["talker", "-f", "--json"]).start();
    let ended = shared.cli("kill", ["talker", "--signal", "USR1"]).finish();
    ended.assert_printed("");
    let ended = following.finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, "two\n"));
    assert_eq!(ended.stdout(), "three\n");
    let log = as_json.finish().json();
    assert_eq!(log["stdout"], json!("one\nready\nthree\n"));
    assert_eq!(log["process"]["exit_code"], json!(0), "{log}");

    // The log of a process that has ended is kept.
    let ended = shared.cli("logs", ["talker"]).finish();
    assert_eq!(ended.stdout(), "one\nready\nthree\n");
}

#[test]
fn the_command_of_run_has_a_log_too() {
    let shared = SharedVm::start("main-log");
    let ended = shared.cli("logs", ["main"]).finish();
    ended.assert_printed("ready\n");
}

#[test]
fn what_is_not_kept_any_more_is_told() {
    let shared = SharedVm::start("gap");
    shared.spawn("chatty", ["sh", "-c", "yes | head -c 3000000; echo end"]);
    // Ends when the process ends, whatever part of the log it prints.
    assert_eq!(shared.cli("logs", ["chatty", "-f"]).finish().code(), 0);

    let ended = shared.cli("logs", ["chatty", "--json"]).finish();
    let log = ended.json();
    let dropped = log["stdout_dropped_bytes"].as_u64().unwrap();
    let text = log["stdout"].as_str().unwrap();
    assert!(dropped > 0, "{dropped}");
    assert_eq!(dropped + text.len() as u64, 3_000_004);
    assert_eq!(log["process"]["stdout"]["kept_from"], json!(dropped));

    let ended = shared.cli("logs", ["chatty"]).finish();
    assert_eq!(ended.stdout(), text);
    assert!(text.ends_with("y\nend\n"));
    let note = format!("vmcell: {dropped} bytes of standard output are no longer kept\n");
    assert_eq!((ended.code(), ended.stderr), (0, note));
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    let shared = SharedVm::start("enough");
    shared.spawn("endless", ["yes"]);
    let mut following = shared.cli("logs", ["endless", "-f"]).start();
    assert_eq!(following.line(), "y\n");
    following.close_stdout();
    assert_eq!(following.finish().code(), 141);
    // The process itself was not affected.
    assert_eq!(shared.process("endless").unwrap()["state"], "running");
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let shared = SharedVm::start("no-log");
    for (name, words) in [
        ("nothing", "process \"nothing\": no such process"),
        ("999", "process 999: no such process"),
        ("pid:999", "process with pid 999: no such process"),
    ] {
        let ended = shared.cli("logs", [name]).finish();
        ended.assert_failed(125, words);
        assert!(ended.stderr.contains("`vmcell ps"), "{ended:?}");
    }
    let ended = shared.cli("logs", ["nothing", "--json"]).finish();
    assert_eq!(ended.json()["error"]["code"], json!("exec"));
    assert_eq!(ended.code(), 125);
}
