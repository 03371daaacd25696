//! `vmcell workspace`: VMs that outlive the program.

mod damaged;
mod defaults;
mod files;
mod history;
mod listing;
mod pauses;
mod resets;
mod secrets;
mod seeds;
mod services;
mod templates;

use std::{fs, path::Path, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    processes::Process,
    vmcell::{Ended, Vmcell},
};

/// The workspaces of one test.
struct Store {
    state: TempDir,
}

impl Store {
    fn new() -> Self {
        Self {
            state: tempfile::tempdir().unwrap(),
        }
    }

    /// A subcommand of `vmcell workspace`.
    fn cli<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        let arguments = ["workspace"].into_iter().chain(arguments);
        Vmcell::new(arguments).env("XDG_STATE_HOME", self.state.path())
    }

    /// Runs a subcommand that succeeds, and returns what it prints.
    #[track_caller]
    fn text<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let ended = self.cli(arguments).finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
        ended.stdout().to_owned()
    }

    /// Runs a subcommand that succeeds, and returns its result.
    #[track_caller]
    fn json<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Value {
        let text = self.text(arguments.into_iter().chain(["--json"]));
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a shell line in a workspace.
    fn exec(&self, id: &str, line: &str) -> Ended {
        self.cli(["exec", id, "--", "sh", "-c", line]).finish()
    }

    /// Creates a small workspace, and returns its id.
    #[track_caller]
    fn create<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> String {
        let create = ["create", "base", "--mem-mib", "128", "--id-only"];
        let text = self.text(create.into_iter().chain(options));
        text.strip_suffix('\n').unwrap().to_owned()
    }

    /// Returns the process that runs a workspace.
    fn keeper(&self, id: &str) -> Process {
        let list = Vmcell::new(["ps", "--json"]).finish().json();
        let vms = list["vms"].as_array().unwrap();
        let vm = vms.iter().find(|vm| vm["id"] == id).unwrap();
        let pid = vm["owner_pid"].as_i64().unwrap();
        Process::new(Pid::from_raw(pid.try_into().unwrap()).unwrap())
    }

    /// Deletes a workspace, and checks that nothing of it is left.
    #[track_caller]
    fn delete(&self, id: &str) {
        let keeper = self.keeper(id);
        assert_eq!(self.text(["delete", id]), format!("{id} is deleted\n"));
        assert!(keeper.ends_within(ENOUGH), "{id}");
        let ended = self.cli(["status", id]).finish();
        ended.assert_failed(125, "there is no workspace");
    }

    /// Checks that no workspace is left.
    fn assert_empty(&self) {
        assert_eq!(self.json(["list"])["workspaces"], serde_json::json!([]));
        let folder = self.state.path().join("vmcell/workspaces");
        let left = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let left = left.map(|entry| entry.file_name().into_string().unwrap());
        let left: Vec<_> = left
            .filter(|name| name != "lock" && name != "listed")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Ends what a test that has failed leaves running.
impl Drop for Store {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let list = self.cli(["list", "--json"]).finish().json();
        for workspace in list["workspaces"].as_array().into_iter().flatten() {
            let id = workspace["workspace_id"].as_str().unwrap_or_default();
            self.cli(["delete", id]).finish();
        }
    }
}

/// How long a keeper may take to end.
const ENOUGH: Duration = Duration::from_secs(30);

fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_workspace_outlives_the_command_that_has_created_it() {
    let store = Store::new();
    let seed = tempfile::tempdir().unwrap();
    fs::write(seed.path().join("file"), "seeded\n").unwrap();
    let options = ["--name", "build", "--label", "team=a", "--label", "b=1"];
    let more = ["--seed-path", text_of(seed.path()), "--user", "1000:1000"];
    let variables = ["--env", "A=1", "--env", "B=2"];
    let id = store.create(options.into_iter().chain(more).chain(variables));

    // With the defaults of the workspace, and the exit code of the command.
    let ended = store.exec("build", "cat file; pwd; id -u; echo $A $B >&2; exit 7");
    assert_eq!((ended.code(), ended.stderr.as_str()), (7, "1 2\n"));
    assert_eq!(ended.stdout(), "seeded\n/workspace\n1000\n");
    let options = ["--user", "root", "--env", "B=3", "--cwd", "/", "--json"];
    let command = ["--", "sh", "-c", "id -u; echo $A $B; pwd"];
    let exec = ["exec", &id].into_iter().chain(options).chain(command);
    let result = store.cli(exec).finish().json();
    assert_eq!(result["stdout"], "0\n1 3\n/\n", "{result}");
    assert_eq!(result["workspace_id"], *id);
    assert_eq!(result["exit_code"], 0);
    let exec = ["exec", "build", "--", "no-such-program"];
    store
        .cli(exec)
        .finish()
        .assert_failed(127, "no-such-program");

    let status = store.json(["status", "build"]);
    assert_eq!(status["workspace_id"], *id, "{status}");
    assert_eq!(status["name"], "build");
    assert_eq!(status["labels"], serde_json::json!({"team": "a", "b": "1"}));
    assert_eq!(status["environment"], "base");
    assert_eq!(status["state"], "running");
    assert_eq!(status["stop_reason"], Value::Null);
    assert_eq!(
        (&status["vcpu_count"], &status["mem_mib"]),
        (&1.into(), &128.into())
    );
    assert_eq!(status["network_policy"], "off");
    assert_eq!(status["workspace_seed"]["mode"], "directory");
    assert_eq!(status["workspace_seed"]["entries"], 1);
    assert_eq!(status["workspace_seed"]["bytes"], 7);
    assert_eq!(status["reset_count"], 0);
    assert_eq!(status["last_reset_at"], Value::Null);
    assert!(
        status["created_at"].as_str().unwrap().ends_with('Z'),
        "{status}"
    );
    let text = store.text(["status", &id]);
    assert!(text.contains("state        running\n"), "{text}");
    let list = store.text(["list"]);
    let row = list.lines().nth(1).unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    let expected = [
        &*id,
        "build",
        "running",
        "base",
        "just",
        "now",
        "b=1,team=a",
    ];
    assert_eq!(words, expected, "{list}");
    let rows = store.json(["list"]);
    assert_eq!(rows["workspaces"][0]["workspace_id"], *id);
    assert_eq!(rows["workspaces"][0]["expires_at"], Value::Null);

    let update = ["update", "build", "--name", "other", "--clear-label", "b"];
    let updated = store.json(update.into_iter().chain(["--label", "c=d e"]));
    assert_eq!(updated["name"], "other");
    assert_eq!(
        updated["labels"],
        serde_json::json!({"team": "a", "c": "d e"})
    );
    let ended = store.cli(["status", "build"]).finish();
    ended.assert_failed(125, "`vmcell workspace list`");
    let ended = store.cli(["update", "other"]).finish();
    ended.assert_failed(125, "nothing to change");
    let cleared = store.json(["update", &id, "--clear-name", "--clear-labels"]);
    assert_eq!(
        (&cleared["name"], &cleared["labels"]),
        (&Value::Null, &serde_json::json!({}))
    );
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn a_workspace_is_stopped_started_paused_and_resumed() {
    let store = Store::new();
    let id = store.create(["--name", "life"]);
    assert_eq!(
        store
            .exec(&id, "echo kept > file; touch /dev/shm/file")
            .code(),
        0
    );
    let keeper = store.keeper(&id);
    assert_eq!(
        store.text(["pause", &id]),
        format!("{id} (life) is paused\n")
    );
    assert!(keeper.ends_within(ENOUGH));
    let exec = ["exec", &id, "--no-resume", "--", "true"];
    store.cli(exec).finish().assert_failed(125, "is paused");
    // What is in memory is there again.
    let ended = store.exec("life", "ls /dev/shm");
    ended.assert_printed("file\n");
    store.text(["pause", &id]);
    assert_eq!(store.json(["resume", &id])["state"], "running");

    let keeper = store.keeper(&id);
    let stopped = store.json(["stop", &id]);
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(stopped["stop_reason"], "stopped");
    assert!(keeper.ends_within(ENOUGH));
    let ended = store.exec(&id, "true");
    ended.assert_failed(125, "start it first");
    let ended = store.cli(["resume", &id]).finish();
    ended.assert_failed(125, "must be paused");
    assert_eq!(
        store.text(["start", &id]),
        format!("{id} (life) is running\n")
    );
    store
        .exec(&id, "cat file; ls /dev/shm; sync")
        .assert_printed("kept\n");

    // Nothing tells the record that a keeper was killed.
    let keeper = store.keeper(&id);
    kill_process(keeper.pid, Signal::KILL).unwrap();
    assert!(keeper.ends_within(ENOUGH));
    let text = store.text(["status", &id]);
    assert!(
        text.contains("stopped: the program that ran it ended unexpectedly"),
        "{text}"
    );
    store.text(["start", &id]);
    store.exec(&id, "cat file").assert_printed("kept\n");
    // A keeper that is asked to end stops the workspace.
    let keeper = store.keeper(&id);
    kill_process(keeper.pid, Signal::TERM).unwrap();
    assert!(keeper.ends_within(ENOUGH));
    assert_eq!(store.json(["status", &id])["state"], "stopped");
    store.text(["delete", "life"]);
    store.assert_empty();
}

#[test]
fn what_cannot_be_created_is_refused_with_the_reason() {
    let store = Store::new();
    for (options, expected) in [
        (["--name", "a/b"], "cannot be a name"),
        (["--seed-path", "/does/not/exist"], "/does/not/exist"),
        (["--user", "nobody-knows-me"], "no such user"),
    ] {
        let create = ["create", "base", "--mem-mib", "128"];
        let ended = store.cli(create.into_iter().chain(options)).finish();
        ended.assert_failed(125, expected);
    }
    let ended = store.cli(["create", "no-such-environment"]).finish();
    ended.assert_failed(125, "no environment");
    store.assert_empty();
    // Only `vmcell workspace` starts it.
    let ended = Vmcell::new(["keep-workspace"]).finish();
    ended.assert_failed(125, "was not started to keep a workspace");
}

#[test]
fn files_go_into_a_workspace_and_out_of_it_and_stay_below_its_folder() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let host = |name: &str| folder.path().join(name);
    let id = store.create(["--name", "files"]);
    fs::create_dir(host("tree")).unwrap();
    fs::write(host("tree/one"), "1\n").unwrap();
    let pushed = store.json(["sync", "push", "files", text_of(&host("tree"))]);
    assert_eq!(
        (&pushed["entries"], &pushed["workspace_id"]),
        (&1.into(), &(*id).into())
    );
    let (tree, one, patch_file) = (host("tree"), host("tree/one"), host("patch"));
    let push = ["sync", "push", "files", text_of(&one)];
    store.text(push.into_iter().chain(["--dest", "/workspace/a/b"]));
    let write = ["file", "write", "files", "new/text", "--text", "schön\n"];
    assert_eq!(store.text(write), "wrote 7 bytes to /workspace/new/text\n");
    fs::write(host("binary"), b"\xff\x00").unwrap();
    let write = ["file", "write", "files", "/workspace/binary", "--text-file"];
    let written = store.json(write.into_iter().chain([text_of(&host("binary"))]));
    assert_eq!(written["bytes_written"], 2);

    let list = store.text(["file", "list", "files"]);
    let names = list
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next_back().unwrap());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["a", "binary", "new", "one"],
        "{list}"
    );
    let list = store.json(["file", "list", "files", "a", "--recursive"]);
    let paths = list["entries"].as_array().unwrap().iter();
    let paths: Vec<_> = paths.map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/workspace/a/b", "/workspace/a/b/one"]);
    assert_eq!(store.text(["file", "read", "files", "new/text"]), "schön\n");
    let read = ["file", "read", "files", "new/text", "--max-bytes", "4"];
    let content = store.json(read);
    assert_eq!(
        (&content["content"], &content["truncated"]),
        (&"sch".into(), &true.into())
    );
    let ended = store.cli(read).finish();
    assert_eq!(ended.stdout(), "sch");
    assert!(ended.stderr.contains("3 of 7 bytes"), "{ended:?}");
    let content = store.json(["file", "read", "files", "binary"]);
    assert_eq!(content["content_bytes"], "ff00");

    let patch = "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+2\n";
    let apply = ["patch", "apply", "files", "--patch", patch];
    assert_eq!(store.text(apply), "M one\n");
    store.cli(apply).finish().assert_failed(1, "one");
    fs::write(
        &patch_file,
        patch.replace("+2", "+3").replace("-1\n", "-2\n"),
    )
    .unwrap();
    let apply = [
        "patch",
        "apply",
        "files",
        "--patch-file",
        text_of(&patch_file),
    ];
    assert_eq!(store.json(apply)["files"][0]["path"], "one");
    let out = host("out");
    let exported = store.json(["export", "files", "one", "--output", text_of(&out)]);
    assert_eq!(exported["output_path"], text_of(&out));
    assert_eq!(fs::read_to_string(&out).unwrap(), "3\n");
    let out = host("a");
    store.text(["export", "files", "/workspace/a", "--output", text_of(&out)]);
    assert_eq!(fs::read_to_string(out.join("b/one")).unwrap(), "1\n");

    // Neither paths nor links lead outside.
    store
        .exec("files", "ln -s /etc etc; ln -s /etc/passwd users")
        .assert_printed("");
    for path in ["/etc/passwd", "../etc/passwd", "etc/passwd", "users"] {
        let ended = store.cli(["file", "read", "files", path]).finish();
        assert_eq!(
            (ended.code(), ended.stdout()),
            (125, ""),
            "{path}: {ended:?}"
        );
        let ended = store
            .cli(["file", "write", "files", path, "--text", "x"])
            .finish();
        assert!(ended.code() == 125 || path == "users", "{path}: {ended:?}");
    }
    let ended = store.cli(["file", "read", "files", "/etc/passwd"]).finish();
    ended.assert_failed(125, "/etc/passwd is not below /workspace");
    let push = ["sync", "push", "files", text_of(&tree), "--dest", "/etc"];
    store
        .cli(push)
        .finish()
        .assert_failed(125, "not below /workspace");
    store
        .exec("files", "grep -c . /etc/passwd >/dev/null")
        .assert_printed("");

    // The disk, without a VM.
    let ended = store.cli(["disk", "list", "files"]).finish();
    ended.assert_failed(125, "stop it first");
    store.text(["stop", "files"]);
    let ended = store.cli(["file", "list", "files"]).finish();
    ended.assert_failed(125, "start it first");
    let list = store.json(["disk", "list", "files", "a", "--recursive"]);
    assert_eq!(list["entries"][1]["path"], "/workspace/a/b/one", "{list}");
    assert_eq!(store.text(["disk", "read", "files", "one"]), "3\n");
    let hostname = store.json(["disk", "read", "files", "/etc/passwd", "--max-bytes", "4"]);
    assert_eq!(
        (&hostname["content"], &hostname["truncated"]),
        (&"root".into(), &true.into())
    );
    let image = host("image.ext4");
    let export = ["disk", "export", "files", "--output", text_of(&image)];
    assert_eq!(store.json(export)["workspace_id"], *id);
    let disk = vmcell::disk::Disk::open(&image).unwrap();
    assert_eq!(disk.read("/workspace/one").unwrap(), b"3\n");
    store.cli(export).finish().assert_failed(125, "image.ext4");
    store.text(["delete", "files"]);
    store.assert_empty();
}

#[test]
fn a_workspace_goes_back_to_a_snapshot_and_forks_from_it() {
    let store = Store::new();
    let id = store.create(["--name", "source", "--label", "team=a"]);
    store.exec("source", "echo 1 > file").assert_printed("");
    let created = store.json(["snapshot", "create", "source", "one"]);
    assert_eq!(created["snapshot"]["snapshot_name"], "one");
    assert_eq!(created["snapshot"]["kind"], "named");
    store.exec("source", "echo 2 > file").assert_printed("");
    let text = store.text(["snapshot", "create", "source", "two"]);
    assert_eq!(text, format!("{id} has the snapshot two\n"));
    let list = store.json(["snapshot", "list", "source"]);
    let names = list["snapshots"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|snapshot| &snapshot["snapshot_name"]).collect();
    assert_eq!(names, ["baseline", "one", "two"], "{list}");
    let list = store.text(["snapshot", "list", "source"]);
    assert!(list.contains("\nbaseline "), "{list}");

    let fork = store.text([
        "fork",
        "source",
        "--snapshot",
        "one",
        "--name",
        "fork",
        "--id-only",
    ]);
    let fork = fork.trim_end();
    let status = store.json(["status", "fork"]);
    assert_eq!(
        (&status["workspace_id"], &status["state"]),
        (&fork.into(), &"stopped".into())
    );
    assert_eq!(status["labels"]["team"], "a");
    store.text(["start", "fork"]);
    store.exec("fork", "cat file").assert_printed("1\n");

    let reset = store.json(["reset", "source", "--snapshot", "one"]);
    assert_eq!(
        (&reset["reset_count"], &reset["state"]),
        (&1.into(), &"running".into())
    );
    assert!(reset["last_reset_at"].is_string(), "{reset}");
    store.exec("source", "cat file").assert_printed("1\n");
    let text = store.text(["reset", "source"]);
    assert_eq!(text, format!("{id} (source) is running\n"));
    store.exec("source", "ls").assert_printed("");
    let text = store.text(["snapshot", "delete", "source", "two"]);
    assert_eq!(text, "the snapshot two is deleted\n");
    let ended = store.cli(["reset", "source", "--snapshot", "two"]).finish();
    ended.assert_failed(125, "`vmcell workspace snapshot list ID`");
    let ended = store
        .cli(["snapshot", "delete", "source", "baseline"])
        .finish();
    ended.assert_failed(125, "baseline");
    store.delete(fork);
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn a_shell_goes_on_between_commands() {
    let store = Store::new();
    let id = store.create(["--user", "1000", "--env", "GREETING=hello"]);
    let shell = store.text(["shell", "open", &id, "--cols", "100", "--id-only"]);
    let shell = shell.trim_end();
    let opened = store.json(["shell", "open", &id, "--cwd", "/"]);
    assert_eq!(
        (&opened["cols"], &opened["rows"]),
        (&120.into(), &30.into())
    );
    assert_ne!(opened["shell_id"], *shell);

    let write = ["shell", "write", &id, shell, "--input"];
    let line = "X=$GREETING; cd /; id -u; stty size";
    let written = store.json(write.into_iter().chain([line]));
    assert_eq!(
        (&written["shell_id"], &written["append_newline"]),
        (&shell.into(), &true.into())
    );
    let read = [
        "shell",
        "read",
        &id,
        shell,
        "--plain",
        "--wait-for-idle-ms",
        "300",
    ];
    let reply = store.json(read);
    let output = reply["output"].as_str().unwrap();
    assert!(output.contains("\n1000\n30 100\n"), "{reply}");
    assert_eq!(
        (&reply["cursor"], &reply["state"]),
        (&0.into(), &"running".into())
    );
    // Another command, which reads only what is new.
    let line = "echo \"$X from $(pwd)\"; sleep 1000";
    store.text(write.into_iter().chain([line]));
    let cursor = reply["next_cursor"].to_string();
    let next = read.into_iter().chain(["--cursor", &cursor]);
    let ended = store.cli(next.clone()).finish();
    assert!(ended.stdout().contains("\nhello from /\n"), "{ended:?}");
    assert!(!ended.stdout().contains("30 100"), "{ended:?}");
    assert!(ended.stderr.contains("--cursor "), "{ended:?}");
    let raw = ["shell", "read", &id, shell, "--max-chars", "5"];
    let raw = store.json(raw);
    assert_eq!(
        (&raw["next_cursor"], &raw["truncated"]),
        (&5.into(), &true.into())
    );

    let signal = store.json(["shell", "signal", &id, shell]);
    assert_eq!(signal["signal"], 2, "{signal}");
    store.text(write.into_iter().chain(["echo ba\"ck\""]));
    let ended = store.cli(next).finish();
    assert!(ended.stdout().contains("\nback\n"), "{ended:?}");
    let closed = store.json(["shell", "close", &id, shell]);
    assert_eq!(closed["closed"], true);
    let ended = store.cli(read).finish();
    ended.assert_failed(125, "is not a terminal");
    store.delete(&id);
    store.assert_empty();
}
