//! `vmcell service`: services in another program's VM.

use serde_json::{Value, json};

use crate::{
    shared_vm::SharedVm,
    vmcell::{Ended, Vmcell},
    web::SERVER,
};

impl SharedVm {
    /// Returns a subcommand of `vmcell service`, for this VM.
    fn service<'a>(&'a self, task: &'a str, rest: impl IntoIterator<Item = &'a str>) -> Vmcell {
        Vmcell::new(["service", task, &self.id].into_iter().chain(rest))
    }

    /// Starts a shell command line as a service.
    fn start_service(&self, name: &str, options: &[&str], line: &str) -> Ended {
        let options = [name].into_iter().chain(options.iter().copied());
        let command = ["--", "sh", "-c", line];
        self.service("start", options.chain(command)).finish()
    }

    /// Returns the status of a service as JSON.
    fn status_of(&self, name: &str) -> Value {
        let ended = self.service("status", [name, "--json"]).finish();
        assert_eq!(ended.code(), 0, "{ended:?}");
        ended.json()["service"].clone()
    }
}

/// Returns the words of a table's row that starts with this one.
fn row<'a>(ended: &'a Ended, first: &str) -> Vec<&'a str> {
    let mut rows = ended
        .stdout()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = rows.find(|words| words.first() == Some(&first));
    found.unwrap_or_else(|| panic!("no {first} in {ended:?}"))
}

#[test]
fn a_service_is_started_looked_at_stopped_started_again_and_forgotten() {
    let shared = SharedVm::start("service");
    let options = ["--ready", "tcp:8080", "--env", "SECRET=of the service"];
    let started = shared.start_service("web", &options, &format!("echo $SECRET; {SERVER}"));
    started.assert_printed("");
    // The service was ready when the command returned.
    let fetch = ["wget", "-q", "-O", "-", "http://127.0.0.1:8080/"];
    shared.exec([], fetch).assert_printed("hello\n");

    let status = shared.status_of("web");
    assert_eq!(status["phase"], json!("ready"), "{status}");
    assert_eq!(status["restarts"], json!(0));
    assert_eq!(status["last_exit"], Value::Null);
    let first = status["pid"].as_u64().unwrap();
    let ended = shared.service("ls", []).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    let header = ["NAME", "PHASE", "SINCE", "PID", "RESTARTS"];
    assert_eq!(row(&ended, "NAME")[..5], header);
    let words = row(&ended, "web");
    assert_eq!((words[1], words[3]), ("ready", &*first.to_string()));
    let status_table = shared.service("status", ["web"]).finish();
    assert_eq!(row(&status_table, "web")[1], "ready");
    assert!(!ended.stdout().contains("of the service"), "{ended:?}");
    shared
        .service("logs", ["web"])
        .finish()
        .assert_printed("of the service\n");

    shared
        .service("restart", ["web"])
        .finish()
        .assert_printed("");
    let status = shared.status_of("web");
    assert_eq!(status["phase"], json!("ready"), "{status}");
    assert_ne!(status["pid"], json!(first));
    shared.exec([], fetch).assert_printed("hello\n");

    let ended = shared.service("stop", ["web", "--json"]).finish();
    let status = &ended.json()["service"];
    assert_eq!(status["phase"], json!("stopped"), "{status}");
    assert_eq!(status["last_exit"]["signal"], json!(15), "{status}");
    assert_eq!(status["pid"], Value::Null);
    shared.service("rm", ["web"]).finish().assert_printed("");
    let ended = shared.service("ls", ["--json"]).finish();
    assert_eq!(ended.json()["services"], json!([]), "{ended:?}");
}

#[test]
fn what_cannot_be_done_to_a_service_says_what_can() {
    let shared = SharedVm::start("refused");
    for task in ["status", "logs", "stop", "restart", "rm"] {
        let ended = shared.service(task, ["ghost"]).finish();
        ended.assert_failed(125, "there is no service \"ghost\": `vmcell service ls");
    }
    let ended = shared.service("stop", ["ghost", "--json"]).finish();
    assert_eq!(ended.json()["error"]["code"], json!("no-such-service"));
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));

    let line = "exec sleep 1000";
    shared.start_service("web", &[], line).assert_printed("");
    let ended = shared.start_service("web", &[], line);
    ended.assert_failed(125, "runs already: `vmcell service stop");
    shared
        .start_service("web", &["--if-same"], line)
        .assert_printed("");
    let ended = shared.start_service("web", &["--if-same"], "exec sleep 1001");
    ended.assert_failed(125, "runs already");
    let ended = shared.service("rm", ["web"]).finish();
    ended.assert_failed(125, "still runs: `vmcell service stop");

    let ended = shared.start_service("a/b", &[], line);
    ended.assert_failed(125, "cannot be the name of a service");
    let ended = shared.start_service("next", &["--needs", "nothing"], line);
    ended.assert_failed(125, "needs \"nothing\"");
    let ended = shared.start_service("next", &["--user", "no-such-user"], line);
    ended.assert_failed(125, "no such user");
    let command = ["next", "--", "no-such-program"];
    let ended = shared.service("start", command).finish();
    ended.assert_failed(125, "no-such-program");
    // A service that did not start is not listed.
    let ended = shared.service("ls", ["--json"]).finish();
    let list = ended.json();
    let names: Vec<_> = list["services"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{list}");
}

#[test]
fn a_service_that_fails_shows_its_last_words_and_stays_to_be_looked_at() {
    let shared = SharedVm::start("failing");
    let line = "printf 'bad \\033]0;title\\007\\n'; exit 9";
    let ended = shared.start_service("web", &["--ready", "file:/never"], line);
    ended.assert_failed(125, "exit code 9");
    assert!(ended.stderr.contains("bad \u{fffd}]0;title"), "{ended:?}");
    let status = shared.status_of("web");
    assert_eq!(status["phase"], json!("failed"), "{status}");
    assert_eq!(status["trouble"], json!("died"));
    assert_eq!(status["last_exit"]["exit_code"], json!(9));
    // Into a pipe, the log goes unchanged.
    let ended = shared.service("logs", ["web"]).finish();
    ended.assert_printed("bad \x1b]0;title\x07\n");
    // A failed service can be started again, without waiting for it.
    let ended = shared.start_service(
        "web",
        &["--ready", "file:/never", "--no-wait"],
        "sleep 1000",
    );
    ended.assert_printed("");
    assert_eq!(shared.status_of("web")["phase"], json!("starting"));
}

#[test]
fn a_log_has_an_end_a_whole_and_a_future() {
    let shared = SharedVm::start("service-log");
    let line = "for n in $(seq 300); do echo $n; done; trap 'echo bye; exit 0' TERM; \
                echo up; sleep 1000 & wait";
    shared
        .start_service("talker", &["--ready", "log:^up$"], line)
        .assert_printed("");
    let lines = |ended: &Ended| ended.stdout().lines().count();
    let ended = shared.service("logs", ["talker"]).finish();
    assert_eq!((ended.code(), lines(&ended)), (0, 200), "{ended:?}");
    let ended = shared.service("logs", ["talker", "--all"]).finish();
    assert!(ended.stdout().starts_with("1\n2\n"), "{ended:?}");
    assert_eq!(lines(&ended), 301);
    let ended = shared.service("logs", ["talker", "--tail", "2"]).finish();
    ended.assert_printed("300\nup\n");
    let ended = shared
        .service("logs", ["talker", "--tail", "1", "--json"])
        .finish();
    let log = ended.json();
    assert_eq!(log["log"], json!("up\n"), "{log}");
    assert_eq!(log["service"]["phase"], json!("ready"));
    assert_eq!(log["dropped_bytes"], json!(0));

    let mut following = shared
        .service("logs", ["talker", "--tail", "1", "--follow"])
        .start();
    assert_eq!(following.line(), "up\n");
    shared
        .service("stop", ["talker"])
        .finish()
        .assert_printed("");
    following.finish().assert_printed("bye\n");
}
