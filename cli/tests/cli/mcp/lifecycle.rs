//! What begins and ends with a call, and with a session.

use serde_json::{Value, json};

use super::client::{Client, State};
use crate::vmcell::eventually;

fn create(client: &mut Client) -> String {
    let created = client.call("workspace_create", json!({ "mem_mib": 128 }));
    created["workspace_id"].as_str().unwrap().to_owned()
}

/// Returns whether a program with this argument runs in a workspace.
fn runs(client: &mut Client, workspace: &str, argument: &str) -> bool {
    let line = format!("ps -o args | grep '^[s]leep {argument}' || true");
    let arguments = json!({ "workspace_id": workspace, "command": line });
    client.call("workspace_exec", arguments)["stdout"] != ""
}

#[test]
fn a_call_that_is_cancelled_ends_its_command_and_reports_until_then() {
    let state = State::new();
    let mut client = state.serve([]);
    let id = create(&mut client);
    let begin = |client: &mut Client, argument: &str| {
        let command = json!(["sleep", argument]);
        let arguments = json!({ "workspace_id": id, "command": command, "timeout_seconds": 500 });
        let call = json!({
            "name": "workspace_exec",
            "arguments": arguments,
            "_meta": { "progressToken": argument },
        });
        client.begin("tools/call", call)
    };
    let slow = begin(&mut client, "1111");
    let other = begin(&mut client, "2222");
    // Both report, each with its token.
    for token in ["1111", "2222"] {
        while !client
            .notifications
            .iter()
            .any(|it| it["params"]["progressToken"] == token)
        {
            let message = client.receive();
            assert_eq!(message["method"], "notifications/progress", "{message}");
            client.notifications.push(message);
        }
    }
    assert!(runs(&mut client, &id, "1111") && runs(&mut client, &id, "2222"));
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": slow, "reason": "not needed" },
    }));
    assert!(eventually(|| !runs(&mut client, &id, "1111")));
    assert!(runs(&mut client, &id, "2222"), "only one was cancelled");
    let _ = other;

    // A client that disappears in the middle of a call ends it, too.
    assert_eq!(client.close().code(), 0);
    let mut client = state.serve([]);
    assert!(eventually(|| !runs(&mut client, &id, "2222")));
    client.call("workspace_delete", json!({ "workspace_id": id }));
}

#[test]
fn workspaces_stay_and_vms_that_nobody_keeps_end_with_the_session() {
    let state = State::new();
    let mut first = state.serve([]);
    let mut second = state.serve([]);
    let workspace = create(&mut first);
    let listed = second.call("workspace_list", json!({}));
    assert_eq!(
        listed["workspaces"][0]["workspace_id"], workspace,
        "{listed}"
    );

    let new = |client: &mut Client, keep: bool| -> Value {
        let created = client.call("vm_create", json!({ "mem_mib": 128, "keep": keep }));
        created["vm_id"].clone()
    };
    let (kept, unkept) = (new(&mut first, true), new(&mut first, false));
    let one = json!({ "vm_id": unkept });
    assert_eq!(first.call("vm_start", one.clone())["state"], "running");
    assert_eq!(
        first.call("vm_network_info", one.clone())["network_policy"],
        "off"
    );
    let used = new(&mut first, false);
    first.call("vm_start", json!({ "vm_id": used }));
    let ran = first.call("vm_exec", json!({ "vm_id": used, "command": "echo once" }));
    assert_eq!(
        (&ran["stdout"], &ran["deleted"]),
        (&json!("once\n"), &json!(true))
    );
    let gone = first.fail("vm_status", json!({ "vm_id": used }));
    assert_eq!(gone["code"], "no-such-vm");
    // It is deleted as well if the call is cancelled.
    let cancelled = new(&mut first, true);
    first.call("vm_start", json!({ "vm_id": cancelled }));
    let command = json!(["sleep", "1000"]);
    let arguments = json!({ "vm_id": cancelled, "command": command, "timeout_seconds": 500 });
    let call = json!({
        "name": "vm_exec",
        "arguments": arguments,
        "_meta": { "progressToken": "runs" },
    });
    let call = first.begin("tools/call", call);
    assert_eq!(first.receive()["method"], "notifications/progress");
    first.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": call },
    }));
    assert!(eventually(|| {
        let status = first.result("vm_status", json!({ "vm_id": cancelled }));
        status["structuredContent"]["error"]["code"] == "no-such-vm"
    }));
    assert_eq!(
        first.call("vm_reap_expired", json!({}))["deleted"],
        json!([])
    );

    assert_eq!(first.close().code(), 0);
    assert_eq!(second.fail("vm_status", one)["code"], "no-such-vm");
    let status = second.call("vm_status", json!({ "vm_id": kept }));
    assert_eq!(status["state"], "stopped");
    second.call("vm_delete", json!({ "vm_id": kept }));
    let arguments = json!({ "workspace_id": workspace, "command": ["echo", "still here"] });
    assert_eq!(
        second.call("workspace_exec", arguments)["stdout"],
        "still here\n"
    );
    second.call("workspace_delete", json!({ "workspace_id": workspace }));
    assert_eq!(second.close().code(), 0);
}

#[test]
fn one_command_runs_in_a_new_vm_within_its_limits() {
    let state = State::new();
    let mut client = state.serve(["--profile", "vm-run"]);
    let ran = client.call(
        "vm_run",
        json!({ "command": "echo out; echo err >&2; exit 3", "mem_mib": 128 }),
    );
    assert_eq!(
        (&ran["stdout"], &ran["stderr"]),
        (&json!("out\n"), &json!("err\n"))
    );
    assert_eq!(
        (&ran["exit_code"], &ran["timed_out"]),
        (&json!(3), &json!(false))
    );
    let long = json!({
        "command": "seq 100000; exec sleep 1000",
        // Enough for the numbers on a busy machine.
        "timeout_seconds": 8.5,
        "max_output_bytes": 1000,
        "mem_mib": 128,
    });
    let ran = client.call("vm_run", long);
    assert_eq!(
        (&ran["timed_out"], &ran["exit_code"]),
        (&json!(true), &Value::Null),
        "{ran}"
    );
    let text = ran["stdout"].as_str().unwrap();
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("99999\n100000\n"),
        "{text}"
    );
    assert!(
        text.contains("[587895 bytes dropped]") && text.len() < 1100,
        "{text}"
    );
    assert_eq!(ran["stdout_bytes"], 588_895);
    assert!(ran["read_on"].is_string());
    let unknown = client.fail(
        "vm_run",
        json!({ "command": "true", "environment": "/etc/passwd" }),
    );
    assert!(
        unknown["what_to_do"].as_str().unwrap().contains("base"),
        "{unknown}"
    );
    assert_eq!(client.close().code(), 0);
}

#[test]
fn many_calls_at_once_are_answered_each() {
    const CALLS: u64 = 32;
    let state = State::new();
    let mut client = state.serve([]);
    let id = create(&mut client);
    let mut calls = std::collections::BTreeMap::new();
    for number in 0..CALLS {
        // The first ones end last.
        let line = format!("sleep 0.{:02}; echo {number}", CALLS - number);
        let arguments = json!({ "workspace_id": id, "command": line });
        let call = json!({ "name": "workspace_exec", "arguments": arguments });
        calls.insert(client.begin("tools/call", call), number);
    }
    while !calls.is_empty() {
        let answer = client.receive();
        let number = calls.remove(&answer["id"].as_u64().unwrap()).unwrap();
        let printed = &answer["result"]["structuredContent"]["stdout"];
        assert_eq!(printed, &json!(format!("{number}\n")), "{answer}");
    }
    let logs = client.call("workspace_logs", json!({ "workspace_id": id, "limit": 1 }));
    assert_eq!(logs["command_count"], CALLS);
    client.call("workspace_delete", json!({ "workspace_id": id }));
}

#[test]
fn a_policy_adds_a_tool_with_receipts() {
    let state = State::new();
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let text = "[images.small]\nenvironment = \"base\"\nmemory_mib = 128\n";
    std::fs::write(&policy, text).unwrap();
    let mut client = state.serve(["--profile", "vm-run", "--policy", policy.to_str().unwrap()]);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(
        (&list[0]["name"], &list[1]["name"]),
        (&json!("vm_run"), &json!("tool_run"))
    );
    let images = &list[1]["inputSchema"]["properties"]["image"]["enum"];
    assert_eq!(images, &json!(["small"]));
    let request = json!({
        "image": "small",
        "files": [{ "path": "/work/hello.sh", "content": "echo hello" }],
        "command": ["sh", "/work/hello.sh"],
        "state": { "retention": "destroy" },
    });
    let answer = client.call("tool_run", request.clone());
    assert_eq!(
        (&answer["stdout"], &answer["failure"]),
        (&json!("hello\n"), &Value::Null)
    );
    let mut refused = request;
    refused["files"][0]["path"] = "/etc/passwd".into();
    let refused = client.result("tool_run", refused);
    assert_eq!(refused["isError"], true);
    let failure = &refused["structuredContent"]["failure"];
    assert_eq!(failure["kind"], "invalid_request", "{failure}");
    let receipts = state.cli(["receipt", "list", "--json"]).finish().json();
    assert_eq!(
        receipts["receipts"].as_array().unwrap().len(),
        2,
        "{receipts}"
    );
    let id = answer["audit_id"].as_str().unwrap();
    assert!(receipts.to_string().contains(id), "{receipts}");
    assert_eq!(client.close().code(), 0);
}
