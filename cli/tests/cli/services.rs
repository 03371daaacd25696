//! Services of `vmcell run`.

use std::{fs, net::TcpListener, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    processes::Process,
    shared_vm::unique,
    vmcell::{READY_AND_WAIT, Running, Vmcell, eventually},
    web::{SERVER, host_port, is_free, page},
};

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a line, and prints it.
const WAIT_FOR_A_LINE: [&str; 3] = ["sh", "-c", "read line; echo $line"];

/// Start of a service that runs until it can read from a FIFO.
const SIDE: &str = "mkfifo /tmp/fifo; echo $$ > /tmp/pid; echo up; cat /tmp/fifo;";

/// Makes that service end, and waits until its process is gone.
const END_SIDE: &str = "echo > /tmp/fifo; while kill -0 $(cat /tmp/pid) 2> /dev/null; do :; done;";

/// The value of `--service` for the web server.
fn web() -> String {
    format!("web={SERVER}")
}

/// Returns the host port that the run reports.
fn published(running: &mut Running) -> u16 {
    let line = running.stderr_line();
    let address = line.strip_prefix("vmcell: published ");
    host_port(address.unwrap_or_else(|| panic!("{line:?}")))
}

#[test]
fn a_server_can_be_reached_from_outside_while_the_command_runs() {
    let web = web();
    let options = [
        "--service",
        &web,
        "--ready",
        "tcp:8080",
        "--publish",
        "8080",
    ];
    let mut running = Vmcell::run(options, WAIT_FOR_A_LINE).start();
    let port = published(&mut running);
    for _ in 0..3 {
        assert_eq!(page(port).unwrap(), "hello\n");
    }
    let writing = running.write_all_and_close(b"seen\n".to_vec());
    running.finish().assert_printed("seen\n");
    writing.join().unwrap();
    assert!(is_free(port), "the port is still taken");
}

#[test]
fn the_command_can_rely_on_its_services_and_shares_their_place() {
    let web = web();
    let options = [
        "--service",
        &web,
        "--ready",
        "http:8080/index.html",
        "--service",
        "who=echo $(id -un) $(pwd) $GREETING; exec sleep 1000",
        "--ready",
        "log:^nobody /tmp/here hi there$",
        "--user",
        "nobody",
        "--cwd",
        "/tmp/here",
        "--create-cwd",
        "--env",
        "GREETING=hi there",
    ];
    let command = ["wget", "-q", "-O", "-", "http://127.0.0.1:8080/"];
    Vmcell::run(options, command)
        .finish()
        .assert_printed("hello\n");
}

/// Each service logs its start and end to a file, which is pulled at the end.
#[test]
fn services_start_when_what_they_need_is_ready_and_stop_the_other_way_round() {
    let folder = tempfile::tempdir().unwrap();
    let order = folder.path().join("order");
    let pull = format!("/tmp/order={}", order.to_str().unwrap());
    let service = |name: &str| {
        format!(
            "{name}=trap 'echo {name} ends >> /tmp/order; exit 0' TERM; \
             echo {name} begins >> /tmp/order; touch /tmp/{name}; sleep 1000 & wait"
        )
    };
    let (web, db) = (service("web"), service("db"));
    let options = [
        "--service",
        &web,
        "--needs",
        "db",
        "--ready",
        "file:/tmp/web",
        "--service",
        &db,
        "--ready",
        "db=file:/tmp/db",
        "--pull",
        &pull,
    ];
    let command = ["sh", "-c", "echo command >> /tmp/order; exit 7"];
    let ended = Vmcell::run(options, command).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (7, ""));
    let logged = fs::read_to_string(order).unwrap();
    let expected = "db begins\nweb begins\ncommand\nweb ends\ndb ends\n";
    assert_eq!(logged, expected);
}

#[test]
fn a_service_that_does_not_become_ready_shows_its_last_words_and_the_command_is_not_run() {
    let dies = "web=echo loading; printf 'no \\033[31mconfig\\n' >&2; exit 3";
    let options = ["--service", dies, "--ready", "tcp:8080"];
    let ended = Vmcell::run(options, ["echo", "started"]).finish();
    ended.assert_failed(125, "\"web\"");
    for words in ["exit code 3", "loading", "no \u{fffd}[31mconfig"] {
        assert!(ended.stderr.contains(words), "{words} in {ended:?}");
    }

    let hangs = "web=echo still loading; exec sleep 1000";
    let options = [
        "--service",
        hangs,
        "--ready",
        "file:/never",
        "--ready-timeout",
        "5",
    ];
    let ended = Vmcell::run(options, ["echo", "started"]).finish();
    ended.assert_failed(125, "\"web\"");
    assert!(ended.stderr.contains("still loading"), "{ended:?}");

    let options = ["--json", "--service", dies, "--ready", "web=tcp:8080"];
    let ended = Vmcell::run(options, ["echo", "started"]).finish();
    let error = &ended.json()["error"];
    assert_eq!(error["code"], json!("service-failed"), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("loading"), "{message}");
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));
}

/// The failed service is named, not the one that waits for it.
#[test]
fn of_services_that_cannot_start_the_one_that_is_to_blame_is_named() {
    let options = [
        "--service",
        "web=exec sleep 1000",
        "--needs",
        "db",
        "--service",
        "db=echo disk full; exit 1",
        "--ready",
        "tcp:5432",
    ];
    let ended = Vmcell::run(options, ["echo", "started"]).finish();
    ended.assert_failed(125, "\"db\"");
    assert!(ended.stderr.contains("disk full"), "{ended:?}");
}

#[test]
fn a_service_that_dies_under_the_command_is_told_at_the_end() {
    let dies = format!("side={SIDE} exit 7");
    let options = ["--service", &dies, "--ready", "log:up"];
    let script = format!("{END_SIDE} echo went on; exit 4");
    let ended = Vmcell::run(options, ["sh", "-c", &script]).finish();
    assert_eq!((ended.code(), ended.stdout()), (4, "went on\n"));
    let note = ended.stderr.strip_prefix("vmcell: ").unwrap();
    assert!(
        note.contains("\"side\"") && note.contains("exit code 7"),
        "{note}"
    );
    assert_eq!(note.lines().count(), 1, "{note}");
}

#[test]
fn a_service_that_dies_is_started_again_if_it_should() {
    // The second time it keeps running.
    let line = format!("side=test -e /tmp/pid && echo up && exec sleep 1000; {SIDE} exit 7");
    let options = [
        "--service",
        &line,
        "--ready",
        "log:up",
        "--restart",
        "on-failure",
        "--id",
        &unique("restart"),
    ];
    let script = format!("{END_SIDE} echo ended; read line");
    let mut running = Vmcell::run(options, ["sh", "-c", &script]).start();
    assert_eq!(running.line(), "ended\n");
    let again = eventually(|| {
        let status = ["service", "status", options[7], "side", "--json"];
        Vmcell::new(status).finish().json()["service"]["restarts"] == json!(1)
    });
    assert!(again, "it is not restarted");
    let writing = running.write_all_and_close(b"done\n".to_vec());
    let ended = running.finish();
    writing.join().unwrap();
    let note = "vmcell: the service \"side\" was restarted (exit code 7)\n";
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, note));
}

#[test]
fn a_result_tells_machines_of_services_and_ports() {
    let (web, side) = (web(), format!("side={SIDE} exit 0"));
    let options = [
        "--json",
        "--service",
        &web,
        "--ready",
        "tcp:8080",
        "--service",
        &side,
        "--ready",
        "log:up",
        "--publish",
        "8080",
    ];
    let script = format!("{END_SIDE} read line; echo $line");
    let mut running = Vmcell::run(options, ["sh", "-c", &script]).start();
    let port = published(&mut running);
    let writing = running.write_all_and_close(b"done\n".to_vec());
    let ended = running.finish();
    writing.join().unwrap();
    let result = ended.json();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(result["stdout"], json!("done\n"));
    assert_eq!(
        result["published"],
        json!([{ "host": port, "guest": 8080 }])
    );
    let [web, side] = &result["services"].as_array().unwrap()[..] else {
        panic!("{result}");
    };
    assert_eq!(
        (&web["name"], &web["phase"]),
        (&json!("web"), &json!("ready"))
    );
    assert_eq!(
        (&web["restarts"], &web["last_exit"]),
        (&json!(0), &Value::Null)
    );
    assert!(web["pid"].as_u64().unwrap() > 1, "{web}");
    assert_eq!(
        (&side["name"], &side["phase"]),
        (&json!("side"), &json!("stopped"))
    );
    assert_eq!(side["last_exit"]["exit_code"], json!(0), "{side}");

    let result = Vmcell::run(["--json"], ["true"]).finish().json();
    for list in ["services", "published"] {
        assert_eq!(result[list], json!([]), "{result}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_and_the_command_is_not_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mapping = format!("{port}:8080");
    let ended = Vmcell::run(["--publish", &mapping], ["echo", "started"]).finish();
    ended.assert_failed(125, &port.to_string());
    let options = ["--json", "--publish", &mapping];
    let ended = Vmcell::run(options, ["echo", "started"]).finish();
    assert_eq!(
        ended.json()["error"]["code"],
        json!("host-port-taken"),
        "{ended:?}"
    );
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));
}

#[test]
fn ctrl_c_ends_services_and_ports_with_the_vm() {
    let web = web();
    // A service that ignores signals does not delay the end.
    let stubborn = "stubborn=trap '' TERM INT; while :; do sleep 1000; done";
    let options = [
        "--service",
        &web,
        "--ready",
        "tcp:8080",
        "--service",
        stubborn,
        "--publish",
        "8080",
    ];
    let mut running = Vmcell::run(options, READY_AND_WAIT).start();
    let port = published(&mut running);
    assert_eq!(running.line(), "ready\n");
    let vmm = Process::only_child_of(running.pid());
    running.signal(Signal::INT);
    assert!(running.ends_within(TIMEOUT), "it did not end");
    assert!(vmm.ends_within(TIMEOUT), "the VMM did not end");
    assert_eq!(running.finish().code(), 130);
    assert!(is_free(port));
}

/// Stopping the service would take ten seconds.
#[test]
fn ctrl_c_ends_a_run_that_waits_for_the_end_of_a_service() {
    let stubborn = "stubborn=trap '' TERM; echo up; while :; do sleep 1000; done";
    let id = unique("stubborn");
    let options = ["--service", stubborn, "--ready", "log:up", "--id", &id];
    let mut running = Vmcell::run(options, ["echo", "done"]).start();
    assert_eq!(running.line(), "done\n");
    // Until then Ctrl-C is for the command.
    let has_ended = eventually(|| {
        let ended = Vmcell::new(["ps", &id]).finish();
        !ended.stdout().contains("echo done")
    });
    assert!(has_ended, "the command does not end");
    running.signal(Signal::INT);
    assert!(running.ends_within(TIMEOUT), "it did not end");
    assert_eq!(running.finish().code(), 130);
}

#[test]
fn ctrl_c_ends_a_run_whose_services_are_not_ready() {
    let id = unique("unready");
    let options = [
        "--id",
        &id,
        "--service",
        "web=echo up; exec sleep 1000",
        "--ready",
        "file:/no",
    ];
    let running = Vmcell::run(options, ["echo", "started"]).start();
    // The service is listed at some point.
    let there = eventually(|| {
        let ended = Vmcell::new(["service", "logs", &id, "web"]).finish();
        ended.code() == 0 && ended.stdout() == "up\n"
    });
    assert!(there, "the service does not start");
    let vmm = Process::only_child_of(running.pid());
    running.signal(Signal::INT);
    assert!(running.ends_within(TIMEOUT), "it did not end");
    assert!(vmm.ends_within(TIMEOUT), "the VMM did not end");
    let ended = running.finish();
    assert_eq!((ended.code(), ended.stdout()), (130, ""));
}
