//! Clients and models that mean no good.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Client, State};
use crate::processes::Process;

#[test]
fn a_model_does_not_reach_the_host() {
    let state = State::new();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let allowed = root.join("allowed");
    fs::create_dir(&allowed).unwrap();
    fs::write(allowed.join("input.txt"), "from the host").unwrap();
    fs::write(root.join("private.txt"), "CANARY").unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let mut closed = state.serve([]);
    let mut open = state.serve(["--allow-path", &text("allowed")]);
    let created = open.call(
        "workspace_create",
        json!({ "mem_mib": 128, "seed_path": text("allowed") }),
    );
    let id = created["workspace_id"].as_str().unwrap().to_owned();
    assert_eq!(created["workspace_seed"]["mode"], "directory");

    for (path, is_allowed) in [
        (text("allowed"), true),
        (text("allowed/input.txt"), true),
        (text("private.txt"), false),
        (text("allowed/../private.txt"), false),
        (text(""), false),
        ("/etc".to_owned(), false),
        ("allowed".to_owned(), false),
    ] {
        let push = json!({ "workspace_id": id, "source_path": path });
        let refused = closed.fail("workspace_sync_push", push.clone());
        assert_eq!(refused["code"], "path-not-allowed");
        match is_allowed {
            true => drop(open.call("workspace_sync_push", push)),
            false => assert_eq!(
                open.fail("workspace_sync_push", push)["code"],
                "path-not-allowed"
            ),
        }
    }
    // A link that the guest has made leads nowhere on the host.
    let link =
        json!({ "workspace_id": id, "command": "mkdir d; ln -s /etc d/link; ln -s /etc top" });
    open.call("workspace_exec", link);
    let export =
        |path: &str, to: &str| json!({ "workspace_id": id, "path": path, "output_path": text(to) });
    open.call("workspace_export", export("d", "allowed/out"));
    open.fail("workspace_export", export("top", "allowed/top"));
    let through = json!({ "workspace_id": id, "source_path": text("allowed/out/link/passwd") });
    assert_eq!(
        open.fail("workspace_sync_push", through)["code"],
        "path-not-allowed"
    );
    let through = export("input.txt", "allowed/out/link/new");
    assert_eq!(
        open.fail("workspace_export", through)["code"],
        "path-not-allowed"
    );
    let outside = export("input.txt", "new");
    assert_eq!(
        open.fail("workspace_export", outside)["code"],
        "path-not-allowed"
    );
    // Nor do paths of the workspace lead out of it.
    for path in ["../etc/passwd", "/etc/passwd", "top/passwd"] {
        open.fail(
            "workspace_file_read",
            json!({ "workspace_id": id, "path": path }),
        );
    }

    // The environment of the server is not that of a command.
    let variables = json!({ "workspace_id": id, "command": "env", "secret_env": {} });
    let seen = open.call("workspace_exec", variables)["stdout"].clone();
    assert!(!seen.as_str().unwrap().contains("XDG_STATE_HOME"), "{seen}");
    open.call("workspace_delete", json!({ "workspace_id": id }));
}

#[test]
fn values_of_secrets_are_in_no_answer() {
    const VALUE: &str = "hunter2-hunter2/xyzzy";
    let state = State::new();
    let mut client = state.serve([]);
    let secrets = json!([{ "name": "token", "value": VALUE }]);
    let created = client.call(
        "workspace_create",
        json!({ "mem_mib": 128, "secrets": secrets }),
    );
    let id = created["workspace_id"].as_str().unwrap().to_owned();
    assert_eq!(
        created["secrets"],
        json!([{ "name": "token", "source": "literal" }])
    );
    let with_secret = |command: &str| json!({ "workspace_id": id, "command": command, "secret_env": { "token": "TOKEN" } });
    let mut answers = vec![created];
    let line = "echo $TOKEN; echo $TOKEN | base64; echo $TOKEN > file; exec /nothing/$TOKEN";
    answers.push(client.call("workspace_exec", with_secret(line)));
    assert!(
        answers[1]["stdout"].as_str().unwrap().starts_with("****"),
        "{}",
        answers[1]
    );
    let plain = |more: Value| {
        let mut arguments = more;
        arguments["workspace_id"] = id.as_str().into();
        arguments
    };
    for (tool, arguments) in [
        ("workspace_logs", plain(json!({}))),
        ("workspace_status", plain(json!({}))),
        ("workspace_list", json!({})),
    ] {
        answers.push(client.call(tool, arguments));
    }
    let opened = client.call("shell_open", {
        let mut open = plain(json!({}));
        open["secret_env"] = json!({ "token": "TOKEN" });
        open
    });
    let shell = &opened["shell_id"];
    client.call(
        "shell_write",
        plain(json!({ "shell_id": shell, "input": "echo $TOKEN" })),
    );
    let read = json!({ "shell_id": shell, "wait_for_idle_ms": 300 });
    answers.push(client.call("shell_read", plain(read)));
    assert!(
        answers.last().unwrap()["output"]
            .as_str()
            .unwrap()
            .contains("****")
    );
    for answer in answers {
        let text = answer.to_string();
        assert!(
            !text.contains(VALUE) && !text.contains("aHVudGVyMi1odW50ZXIy"),
            "{text}"
        );
    }
    let unknown = json!({ "workspace_id": id, "command": "true", "secret_env": { "other": "X" } });
    let unknown = client.fail("workspace_exec", unknown);
    assert_eq!(unknown["code"], "no-such-secret", "{unknown}");
    client.call("workspace_delete", json!({ "workspace_id": id }));

    // The narrow profile has none.
    let mut core = state.serve(["--profile", "workspace-core"]);
    let refused = core.fail("workspace_create", json!({ "secrets": [] }));
    assert_eq!(refused["code"], "invalid");
    let refused = core.fail(
        "workspace_exec",
        json!({ "workspace_id": "x", "command": "true", "secret_env": {} }),
    );
    assert!(
        refused["message"].as_str().unwrap().contains("secret_env"),
        "{refused}"
    );
}

#[test]
fn wrong_messages_get_an_error_and_the_server_goes_on() {
    let state = State::new();
    let mut client = state.serve(["--profile", "workspace-core"]);
    for (tool, arguments, said) in [
        ("vm_run", json!({}), "command"),
        ("vm_run", json!({ "command": 5 }), "command"),
        ("vm_run", json!({ "command": [] }), "command"),
        ("vm_run", json!({ "command": " " }), "command"),
        (
            "vm_run",
            json!({ "command": "true", "timeout_seconds": -1 }),
            "timeout_seconds",
        ),
        (
            "vm_run",
            json!({ "command": "true", "timeout_seconds": "1" }),
            "timeout_seconds",
        ),
        (
            "vm_run",
            json!({ "command": "true", "mem_mib": 1 }),
            "mem_mib",
        ),
        (
            "vm_run",
            json!({ "command": "true", "vcpu_count": 0 }),
            "vcpu_count",
        ),
        (
            "vm_run",
            json!({ "command": "true", "max_output_bytes": 1_u64 << 40 }),
            "max_output_bytes",
        ),
        (
            "vm_run",
            json!({ "command": "true", "image": "/dev/sda" }),
            "image",
        ),
        (
            "workspace_exec",
            json!({ "workspace_id": "../../etc", "command": "true" }),
            "no workspace",
        ),
        (
            "workspace_status",
            json!({ "workspace_id": "" }),
            "no workspace",
        ),
        (
            "workspace_status",
            json!({ "workspace_id": ["a"] }),
            "workspace_id",
        ),
    ] {
        let error = client.fail(tool, arguments.clone());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said), "{arguments}: {error}");
    }
    // Faults of the protocol are errors of the protocol.
    let unknown = client.request("tools/call", json!({ "name": "rm_rf", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let hidden = client.request(
        "tools/call",
        json!({ "name": "vm_create", "arguments": {} }),
    );
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    let method = client.request("no/such/method", json!({}));
    assert_eq!(method["error"]["code"], -32601, "{method}");
    let arguments = client.request(
        "tools/call",
        json!({ "name": "vm_run", "arguments": "text" }),
    );
    assert!(arguments["error"]["code"].is_i64(), "{arguments}");
    for (line, id, code) in [
        (&b"not json"[..], None, -32700),
        (b"{", None, -32700),
        (b"\xff\xfe\x00", None, -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}",
            None,
            -32700,
        ),
        (b"[]", None, -32600),
        (b"{\"jsonrpc\":\"2.0\"}", None, -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":[5],\"method\":\"ping\"}",
            None,
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":\"five\",\"method\":\"ping\"}",
            Some("five"),
            -32600,
        ),
    ] {
        client.send_line(line);
        let answer = client.receive();
        let line = String::from_utf8_lossy(line);
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert_eq!(answer["id"].as_str(), id, "{line}: {answer}");
    }
    // Neither nothing nor a notification gets an answer.
    client.send_line(b"");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/unknown", "params": 5 }));
    // What is longer than any message takes no memory.
    let mut long = b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"x\":\"".to_vec();
    long.resize(100 << 20, b'a');
    long.extend(b"\"},\"id\":77}");
    client.send_line(&long);
    let refused = client.answer(77);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("longer than 16777216 bytes"), "{refused}");
    let list = client.request("tools/list", json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 16);
    assert!(
        client.notifications.is_empty(),
        "{:?}",
        client.notifications
    );
    assert_little_memory(&client);
    assert_eq!(client.close().code(), 0);
}

#[track_caller]
fn assert_little_memory(client: &Client) {
    let status = fs::read_to_string(format!("/proc/{}/status", client.server().pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < 96 * 1024, "the server has used {peak} KiB");
}

#[test]
fn an_id_that_is_in_use_is_refused_and_its_call_goes_on() {
    let state = State::new();
    let mut client = state.serve([]);
    let created = client.call("workspace_create", json!({ "mem_mib": 128 }));
    let id = created["workspace_id"].clone();
    // It ends when the file is there.
    let wait = "until [ -e go ]; do sleep 0.1; done; echo went";
    let arguments = json!({ "workspace_id": id, "command": wait });
    let call = json!({ "name": "workspace_exec", "arguments": arguments });
    let first = client.begin("tools/call", call);
    client.send(&json!({ "jsonrpc": "2.0", "id": first, "method": "tools/list" }));
    let refused = client.receive();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused.get("id").is_none(), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("the id {first} is")), "{refused}");
    let go = json!({ "workspace_id": id, "path": "go", "text": "" });
    client.send(&json!({
        "jsonrpc": "2.0", "id": "go", "method": "tools/call",
        "params": { "name": "workspace_file_write", "arguments": go },
    }));
    let answer = client.answer(first);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"], "went\n",
        "{answer}"
    );
    // One that was answered may be used again.
    client.send(&json!({ "jsonrpc": "2.0", "id": first, "method": "tools/list" }));
    assert!(client.answer(first)["result"].is_object());
    client.call("workspace_delete", json!({ "workspace_id": id }));
}

#[test]
fn a_client_that_does_not_read_does_not_keep_the_server() {
    let state = State::new();
    let mut client = state.serve([]);
    let created = client.call("vm_create", json!({ "mem_mib": 128 }));
    // Each answer has 60 KiB.
    for _ in 0..900 {
        client.begin("tools/list", json!({}));
    }
    let server = client.close_unread();
    assert!(server.ends_within(Duration::from_secs(60)));
    let mut next = state.serve([]);
    let gone = next.fail("vm_status", json!({ "vm_id": created["vm_id"] }));
    assert_eq!(gone["code"], "no-such-vm", "{gone}");
}

/// With a client that has gone, and with a server that was killed.
#[test]
fn a_vm_ends_with_who_has_asked_for_it() {
    for is_killed in [false, true] {
        let state = State::new();
        let mut client = state.serve(["--profile", "vm-run"]);
        let level = client.request("logging/setLevel", json!({ "level": "info" }));
        assert!(level["result"].is_object(), "{level}");
        let command = "echo begun; exec sleep 1000";
        let arguments = json!({ "command": command, "mem_mib": 128, "timeout_seconds": 1000 });
        let call = json!({ "name": "vm_run", "arguments": arguments });
        client.begin("tools/call", call);
        let log = client.receive();
        assert_eq!(log["method"], "notifications/message", "{log}");
        assert_eq!(log["params"]["data"]["text"], "begun\n", "{log}");
        let vmm = Process::only_child_of(client.server().pid());
        let limit = Duration::from_secs(30);
        match is_killed {
            true => client.server().signal(Signal::KILL),
            false => {
                let mut server = client.close_unread();
                server.close_stdout();
                assert!(server.ends_within(limit));
            }
        }
        assert!(vmm.ends_within(limit), "killed: {is_killed}");
    }
}
