//! `vmcell vm`: VMs for one command.

use std::{fs, path::PathBuf, time::Duration};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    processes::Process,
    shared_vm::unique,
    user::{User, has_sighup},
    vmcell::{Ended, READY_AND_WAIT, Running, Vmcell, eventually},
};

/// The workspaces and VMs of one test.
struct State {
    folder: TempDir,
}

impl State {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn cli<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        Vmcell::new(arguments).env("XDG_STATE_HOME", self.folder.path())
    }

    /// Runs a command that succeeds, and returns what it prints.
    #[track_caller]
    fn text<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let ended = self.cli(arguments).finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
        ended.stdout().to_owned()
    }

    /// Runs a command that succeeds, and returns its result.
    #[track_caller]
    fn json<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Value {
        let text = self.text(arguments.into_iter().chain(["--json"]));
        serde_json::from_str(&text).unwrap()
    }

    /// Creates a small VM, and returns its id.
    #[track_caller]
    fn create<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> String {
        let create = ["vm", "create", "--mem-mib", "128", "--id-only"];
        let text = self.text(create.into_iter().chain(options));
        text.strip_suffix('\n').unwrap().to_owned()
    }

    /// Creates and starts one.
    #[track_caller]
    fn start<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> String {
        let id = self.create(options);
        assert_eq!(
            self.text(["vm", "start", &id]),
            format!("{id} is running\n")
        );
        id
    }

    fn exec<'a>(&self, id: &'a str, words: impl IntoIterator<Item = &'a str>) -> Vmcell {
        self.cli(["vm", "exec", id].into_iter().chain(words))
    }

    /// Returns the process that runs a VM.
    fn keeper(id: &str) -> Process {
        let list = Vmcell::new(["ps", "--json"]).finish().json();
        let vms = list["vms"].as_array().unwrap();
        let vm = vms.iter().find(|vm| vm["id"] == id).unwrap();
        let pid = vm["owner_pid"].as_i64().unwrap();
        Process::new(Pid::from_raw(pid.try_into().unwrap()).unwrap())
    }

    /// Returns the ids of the VMs.
    fn ids(&self) -> Vec<String> {
        let list = self.json(["vm", "list"]);
        let vms = list["vms"].as_array().unwrap();
        let ids = vms
            .iter()
            .map(|vm| vm["vm_id"].as_str().unwrap().to_owned());
        ids.collect()
    }

    /// The folders of the VMs.
    fn vms(&self) -> PathBuf {
        self.folder.path().join("vmcell/vms")
    }

    /// Checks that nothing of a VM is left.
    #[track_caller]
    fn assert_gone(&self, id: &str, keeper: &Process) {
        assert!(keeper.ends_within(ENOUGH), "{id}");
        assert!(!self.vms().join(id).exists(), "{id}");
        let ended = self.cli(["vm", "status", id]).finish();
        ended.assert_failed(125, "there is no VM");
    }
}

/// Ends what a test leaves running that has failed.
impl Drop for State {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.cli(["terminate", "--yes"]).finish();
        }
    }
}

/// How long a keeper may take to end.
const ENOUGH: Duration = Duration::from_secs(30);

#[test]
fn a_vm_is_created_started_stopped_used_once_and_gone() {
    let state = State::new();
    let id = state.create([]);
    let letters = id.strip_prefix("vm-").unwrap();
    assert_eq!(letters.len(), 12, "{id}");
    let status = state.json(["vm", "status", &id]);
    assert_eq!(status["vm_id"], *id, "{status}");
    assert_eq!(
        (&status["state"], &status["environment"]),
        (&"stopped".into(), &"base".into())
    );
    assert_eq!(
        (&status["vcpu_count"], &status["mem_mib"]),
        (&1.into(), &128.into())
    );
    assert!(status["expires_at"].is_string(), "{status}");

    // Nothing is deleted as long as no command has run.
    let ended = state.exec(&id, ["--", "true"]).finish();
    ended.assert_failed(125, &format!("`vmcell vm start {id}`"));
    let ended = state.exec(&id, ["--json", "--", "true"]).finish();
    assert_eq!(
        ended.json()["error"]["code"],
        "workspace-state",
        "{ended:?}"
    );
    assert_eq!(state.json(["vm", "start", &id])["state"], "running");
    let keeper = State::keeper(&id);
    assert_eq!(
        state.text(["vm", "stop", &id]),
        format!("{id} is stopped\n")
    );
    assert!(keeper.ends_within(ENOUGH));
    state.text(["vm", "start", &id]);
    let text = state.text(["vm", "status", &id]);
    assert!(text.contains("state        running\n"), "{text}");
    let list = state.text(["vm", "list"]);
    assert!(list.lines().nth(1).unwrap().starts_with(&*id), "{list}");
    assert_eq!(state.ids(), [&*id]);

    let keeper = State::keeper(&id);
    let line = "pwd; cat; echo error >&2";
    let mut running = state.exec(&id, ["--", "sh", "-c", line]).start();
    running
        .write_all_and_close(b"in\n".to_vec())
        .join()
        .unwrap();
    let ended = running.finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, "error\n"));
    assert_eq!(ended.stdout(), "/workspace\nin\n");
    state.assert_gone(&id, &keeper);
    assert!(state.ids().is_empty());
    let ended = state.exec(&id, ["--json", "--", "true"]).finish();
    assert_eq!(ended.json()["error"]["code"], "no-such-vm", "{ended:?}");
}

#[test]
fn a_vm_is_deleted_however_its_command_has_ended() {
    let state = State::new();
    let run = |words: &[&str]| -> Ended {
        let id = state.start([]);
        let keeper = State::keeper(&id);
        let ended = state.exec(&id, words.iter().copied()).finish();
        state.assert_gone(&id, &keeper);
        ended
    };
    assert_eq!(run(&["--", "sh", "-c", "exit 7"]).code(), 7);
    run(&["--", "no-such-program"]).assert_failed(127, "no-such-program");
    run(&["--timeout-seconds", "1", "--", "sleep", "100"]).assert_failed(124, "timed out");

    let result = run(&["--json", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!(result.code(), 3);
    let result = result.json();
    assert!(result["vm_id"].as_str().unwrap().starts_with("vm-"));
    assert_eq!(
        (&result["deleted"], &result["exit_code"]),
        (&true.into(), &3.into())
    );
    assert_eq!(
        (&result["stdout"], &result["timed_out"]),
        (&"out\n".into(), &false.into())
    );
    let result = run(&["--json", "--", "no-such-program"]);
    assert_eq!(result.code(), 127);
    let result = result.json();
    assert_eq!(result["error"]["code"], "exec", "{result}");
    assert_eq!(result["deleted"], true);
    let result = run(&["--json", "--timeout-seconds", "1", "--", "sleep", "100"]);
    assert_eq!(result.code(), 124);
    let result = result.json();
    assert_eq!(
        (&result["deleted"], &result["timed_out"]),
        (&true.into(), &true.into())
    );
}

#[test]
fn a_vm_is_deleted_when_its_command_is_interrupted_or_nobody_reads_its_output() {
    let state = State::new();
    let start = || -> (String, Process, Running) {
        let id = state.start([]);
        let keeper = State::keeper(&id);
        let words = ["--"].into_iter().chain(READY_AND_WAIT);
        let mut running = state.exec(&id, words).start();
        assert_eq!(running.line(), "ready\n");
        (id, keeper, running)
    };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && !has_sighup() {
            println!("skipped: SIGHUP is ignored here");
            continue;
        }
        let (id, keeper, running) = start();
        running.signal(signal);
        assert_eq!(running.finish().code(), code);
        state.assert_gone(&id, &keeper);
    }
    let id = state.start([]);
    let keeper = State::keeper(&id);
    let mut running = state.exec(&id, ["--", "yes"]).start();
    assert_eq!(running.line(), "y\n");
    running.close_stdout();
    assert_eq!(running.finish().code(), 141);
    state.assert_gone(&id, &keeper);
}

#[test]
fn what_a_killed_client_leaves_is_reaped() {
    let state = State::new();
    let id = state.start(["--ttl-seconds", "0"]);
    assert_eq!(state.json(["vm", "status", &id])["expires_at"], Value::Null);
    let keeper = State::keeper(&id);
    // As long as its command runs, or none has, it stays.
    let unused = state.create(["--ttl-seconds", "0"]);
    let words = ["--"].into_iter().chain(READY_AND_WAIT);
    let mut running = state.exec(&id, words).start();
    assert_eq!(running.line(), "ready\n");
    assert_eq!(state.text(["vm", "reap-expired"]), "");
    running.signal(Signal::KILL);
    assert!(running.ends_within(ENOUGH));
    assert_eq!(state.json(["vm", "status", &id])["state"], "running");
    assert_eq!(state.text(["vm", "reap-expired"]), format!("{id}\n"));
    state.assert_gone(&id, &keeper);
    assert_eq!(state.ids(), [&*unused]);
    state.text(["vm", "delete", &unused]);
}

#[test]
fn a_stopped_vm_whose_time_is_over_is_reaped() {
    let state = State::new();
    // It has no process that could do it.
    let id = state.create(["--ttl-seconds", "1"]);
    let is_reaped = || {
        let reaped = state.json(["vm", "reap-expired"]);
        reaped["deleted"] == json!([*id])
    };
    assert!(eventually(is_reaped));
    assert!(state.ids().is_empty());
}

#[test]
fn kept_vms_whose_time_is_over_are_deleted_while_another_one_runs() {
    let state = State::new();
    // Who never kept a VM gets no folder for them.
    assert_eq!(state.text(["run", "--", "true"]), "");
    assert_eq!(fs::read_dir(state.folder.path()).unwrap().count(), 0);
    let kept = state.create(["--ttl-seconds", "3600"]);
    state.create(["--ttl-seconds", "1"]);
    let workspace = &*unique("expired");
    let create = ["workspace", "create", "--mem-mib", "128", "--id", workspace];
    state.text(create.into_iter().chain(["--ttl-seconds", "3600"]));
    state.text(["workspace", "stop", workspace]);
    assert!(eventually(|| {
        state.text(["run", "--", "true"]);
        state.ids() == [&*kept]
    }));
    assert_eq!(
        state.json(["workspace", "status", workspace])["workspace_id"],
        workspace
    );
    state.text(["workspace", "delete", workspace]);
    state.text(["vm", "delete", &kept]);
}

#[test]
fn workspaces_are_not_among_the_vms_and_exec_does_not_delete_them() {
    let state = State::new();
    let mine = &*unique("mine");
    let create = ["workspace", "create", "--mem-mib", "128", "--id", mine];
    assert_eq!(state.text(create), format!("{mine} is running\n"));
    for command in ["exec", "delete", "status", "network"] {
        let words = ["vm", command, mine].into_iter();
        let words = words.chain(["true"].into_iter().filter(|_| command == "exec"));
        let ended = state.cli(words).finish();
        ended.assert_failed(125, &format!("there is no VM {mine:?}"));
    }
    let exec = |words: &[&str]| -> i32 {
        let exec = ["workspace", "exec", mine].into_iter();
        state.cli(exec.chain(words.iter().copied())).finish().code()
    };
    assert_eq!(exec(&["--", "true"]), 0);
    assert_eq!(exec(&["--", "sh", "-c", "exit 7"]), 7);
    assert_eq!(exec(&["--timeout-seconds", "1", "--", "sleep", "100"]), 124);
    let status = state.json(["workspace", "status", mine]);
    assert_eq!(
        (&status["state"], &status["command_count"]),
        (&"running".into(), &3.into())
    );

    // A VM may get the same id, and harms nothing.
    assert_eq!(state.create(["--id", mine]), mine);
    let ended = state.cli(["vm", "create", "--id", mine]).finish();
    ended.assert_failed(125, &format!("`vmcell vm delete {mine}`"));
    let ended = state.cli(["vm", "start", mine]).finish();
    ended.assert_failed(125, &format!("a VM with the id {mine:?} runs already"));
    assert_eq!(state.json(["vm", "status", mine])["state"], "stopped");
    state.text(["vm", "delete", mine]);
    assert_eq!(exec(&["--", "true"]), 0);
    let ended = state.cli(["workspace", "create", "--id", mine]).finish();
    ended.assert_failed(125, &format!("there is a workspace with the id {mine:?}"));
    let ended = state.cli(["workspace", "create", "--id", "Mine"]).finish();
    ended.assert_failed(125, "lower-case letters");
    state.text(["workspace", "delete", mine]);
}

#[test]
fn what_a_vm_may_reach_is_shown_and_what_was_denied() {
    let state = State::new();
    let options = ["--allow", "web.test:80", "--resolve", "web.test=127.0.0.1"];
    let id = state.create(options);
    let before = state.json(["vm", "network", &id]);
    assert_eq!(before["vm_id"], *id, "{before}");
    assert_eq!(before["network_policy"], "egress");
    assert_eq!(before["allow"], json!(["web.test:80"]));
    assert_eq!(before["published_ports"], false);
    assert_eq!(
        (&before["denied"], &before["denials"]),
        (&Value::Null, &Value::Null)
    );
    let text = state.text(["vm", "network", &id]);
    assert!(text.contains("allow        web.test:80\n"), "{text}");
    assert!(
        text.contains("ports        cannot be published\n"),
        "{text}"
    );

    state.text(["vm", "start", &id]);
    let ended = Vmcell::exec(&id, [], ["nc", "other.test", "80"]).finish();
    assert_ne!(ended.code(), 0);
    let after = state.json(["vm", "network", &id]);
    assert_eq!(after["state"], "running");
    let denials = after["denials"].as_array().unwrap();
    // A name may be looked for more than once.
    assert_eq!(after["denied"], denials.len(), "{after}");
    assert!(!denials.is_empty());
    assert_eq!(after["denials"][0]["wanted"], "other.test", "{after}");
    let text = state.text(["vm", "network", &id]);
    assert!(
        text.contains("other.test denied: no rule allows it\n"),
        "{text}"
    );
    state.text(["vm", "delete", &id]);
}

#[test]
fn terminate_deletes_all_workspaces_and_vms_and_asks_a_person_only() {
    let state = State::new();
    let first = &*unique("first");
    let folder = state.folder.path().to_str().unwrap();
    let environment = [("XDG_STATE_HOME", folder)];
    let create = ["workspace", "create", "--mem-mib", "128", "--id"];
    state.text(create.into_iter().chain([first, "--name", "build"]));
    let vm = state.create([]);

    let mut user = User::run_with(["terminate"], &environment);
    let question = user.sees("[y/N] ");
    for words in [&*format!("{first} running build"), &*vm] {
        assert!(question.contains(words), "{question}");
    }
    user.enters("n");
    let left = user.finish();
    assert_eq!(left.code, 125, "{left:?}");
    assert!(left.printed.contains("nothing is deleted"), "{left:?}");
    assert_eq!(
        state.json(["workspace", "status", "build"])["state"],
        "running"
    );
    assert_eq!(state.ids(), [&*vm]);

    // Without a terminal.
    let keeper = State::keeper(first);
    let outcome = state.json(["terminate"]);
    let expected = json!({ "workspaces": [first], "vms": [vm], "failed": [] });
    assert_eq!(outcome, expected);
    assert!(keeper.ends_within(ENOUGH));
    assert_eq!(state.json(["workspace", "list"])["workspaces"], json!([]));
    assert!(state.ids().is_empty());

    // One that cannot be deleted does not keep the others.
    let (stuck, other) = (state.create([]), state.create([]));
    fs::write(state.vms().join(format!(".deleted-{stuck}")), "").unwrap();
    let ended = state.cli(["terminate"]).finish();
    assert_eq!(
        (ended.code(), ended.stdout()),
        (1, &*format!("{other} is deleted\n"))
    );
    let message = format!("vmcell: {stuck} is not deleted: ");
    assert!(ended.stderr.starts_with(&message), "{ended:?}");
    fs::remove_file(state.vms().join(format!(".deleted-{stuck}"))).unwrap();
    let mut user = User::run_with(["terminate"], &environment);
    user.sees("[y/N] ");
    user.enters("y");
    assert_eq!(user.finish().code, 0);
    assert!(state.ids().is_empty());
    // There is nothing to ask.
    let user = User::run_with(["terminate"], &environment);
    assert_eq!(user.finish().code, 0);
}
