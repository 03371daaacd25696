//! `vmcell service`: services in another program's VM.

use serde_json::{Value, json};

use crate::{
    keeper::Keeper,
    vmcell::{Ended, Vmcell},
    web::SERVER,
};

impl Keeper {
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
    let keeper = Keeper::start("service");
    let options = ["--ready", "tcp:8080", "--env", "SECRET=of the service"];
    let started = keeper.start_service("web", &options, &format!("echo $SECRET; {SERVER}"));
    started.assert_printed("");
    // The service was ready when the command returned.
    let visit = ["wget", "-q", "-O", "-", "http://127.0.0.1:8080/"];
    keeper.exec([], visit).assert_printed("hello\n");

    let status = keeper.status_of("web");
    assert_eq!(status["phase"], json!("ready"), "{status}");
    assert_eq!(status["restarts"], json!(0));
    assert_eq!(status["last_exit"], Value::Null);
    let first = status["pid"].as_u64().unwrap();
    let ended = keeper.service("ls", []).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    let header = ["NAME", "PHASE", "SINCE", "PID", "RESTARTS"];
    assert_eq!(row(&ended, "NAME")[..5], header);
    let words = row(&ended, "web");
    assert_eq!((words[1], words[3]), ("ready", &*first.to_string()));
    let told = keeper.service("status", ["web"]).finish();
    assert_eq!(row(&told, "web")[1], "ready");
    assert!(!ended.stdout().contains("of the service"), "{ended:?}");
    keeper
        .service("logs", ["web"])
        .finish()
        .assert_printed("of the service\n");

    keeper
        .service("restart", ["web"])
        .finish()
        .assert_printed("");
    let status = keeper.status_of("web");
    assert_eq!(status["phase"], json!("ready"), "{status}");
    assert_ne!(status["pid"], json!(first));
    keeper.exec([], visit).assert_printed("hello\n");

    let ended = keeper.service("stop", ["web", "--json"]).finish();
    let status = &ended.json()["service"];
    assert_eq!(status["phase"], json!("stopped"), "{status}");
    assert_eq!(status["last_exit"]["signal"], json!(15), "{status}");
    assert_eq!(status["pid"], Value::Null);
    keeper.service("rm", ["web"]).finish().assert_printed("");
    let ended = keeper.service("ls", ["--json"]).finish();
    assert_eq!(ended.json()["services"], json!([]), "{ended:?}");
}

#[test]
fn what_cannot_be_done_to_a_service_says_what_can() {
    let keeper = Keeper::start("refused");
    for task in ["status", "logs", "stop", "restart", "rm"] {
        let ended = keeper.service(task, ["ghost"]).finish();
        ended.assert_failed(125, "there is no service \"ghost\": `vmcell service ls");
    }
    let ended = keeper.service("stop", ["ghost", "--json"]).finish();
    assert_eq!(ended.json()["error"]["code"], json!("no-such-service"));
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));

    let line = "exec sleep 1000";
    keeper.start_service("web", &[], line).assert_printed("");
    let ended = keeper.start_service("web", &[], line);
    ended.assert_failed(125, "runs already: `vmcell service stop");
    keeper
        .start_service("web", &["--if-same"], line)
        .assert_printed("");
    let ended = keeper.start_service("web", &["--if-same"], "exec sleep 1001");
    ended.assert_failed(125, "runs already");
    let ended = keeper.service("rm", ["web"]).finish();
    ended.assert_failed(125, "still runs: `vmcell service stop");

    let ended = keeper.start_service("a/b", &[], line);
    ended.assert_failed(125, "cannot be the name of a service");
    let ended = keeper.start_service("next", &["--needs", "nothing"], line);
    ended.assert_failed(125, "needs \"nothing\"");
    let ended = keeper.start_service("next", &["--user", "no-such-user"], line);
    ended.assert_failed(125, "no such user");
    let command = ["next", "--", "no-such-program"];
    let ended = keeper.service("start", command).finish();
    ended.assert_failed(125, "no-such-program");
    // A service that did not start is not listed.
    let ended = keeper.service("ls", ["--json"]).finish();
    let list = ended.json();
    let names: Vec<_> = list["services"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{list}");
}

#[test]
fn a_service_that_fails_shows_its_last_words_and_stays_to_be_looked_at() {
    let keeper = Keeper::start("failing");
    let line = "printf 'bad \\033]0;title\\007\\n'; exit 9";
    let ended = keeper.start_service("web", &["--ready", "file:/never"], line);
    ended.assert_failed(125, "exit code 9");
    assert!(ended.stderr.contains("bad \u{fffd}]0;title"), "{ended:?}");
    let status = keeper.status_of("web");
    assert_eq!(status["phase"], json!("failed"), "{status}");
    assert_eq!(status["trouble"], json!("died"));
    assert_eq!(status["last_exit"]["exit_code"], json!(9));
    // Into a pipe, the log goes unchanged.
    let ended = keeper.service("logs", ["web"]).finish();
    ended.assert_printed("bad \x1b]0;title\x07\n");
    // A failed service can be started again, without waiting for it.
    let ended = keeper.start_service(
        "web",
        &["--ready", "file:/never", "--no-wait"],
        "sleep 1000",
    );
    ended.assert_printed("");
    assert_eq!(keeper.status_of("web")["phase"], json!("starting"));
}

#[test]
fn a_log_has_an_end_a_whole_and_a_future() {
    let keeper = Keeper::start("service-log");
    let line = "for n in $(seq 300); do echo $n; done; trap 'echo bye; exit 0' TERM; \
                echo up; sleep 1000 & wait";
    keeper
        .start_service("talker", &["--ready", "log:^up$"], line)
        .assert_printed("");
    let lines = |ended: &Ended| ended.stdout().lines().count();
    let ended = keeper.service("logs", ["talker"]).finish();
    assert_eq!((ended.code(), lines(&ended)), (0, 200), "{ended:?}");
    let ended = keeper.service("logs", ["talker", "--all"]).finish();
    assert!(ended.stdout().starts_with("1\n2\n"), "{ended:?}");
    assert_eq!(lines(&ended), 301);
    let ended = keeper.service("logs", ["talker", "--tail", "2"]).finish();
    ended.assert_printed("300\nup\n");
    let ended = keeper
        .service("logs", ["talker", "--tail", "1", "--json"])
        .finish();
    let log = ended.json();
    assert_eq!(log["log"], json!("up\n"), "{log}");
    assert_eq!(log["service"]["phase"], json!("ready"));
    assert_eq!(log["dropped_bytes"], json!(0));

    let mut following = keeper
        .service("logs", ["talker", "--tail", "1", "--follow"])
        .start();
    assert_eq!(following.line(), "up\n");
    keeper
        .service("stop", ["talker"])
        .finish()
        .assert_printed("");
    following.finish().assert_printed("bye\n");
}
