//! `vmcell mcp serve`, with real VMs.

mod attacks;
mod client;
mod documentation;
mod http;
mod lifecycle;
mod official_client;
mod resources;
mod sdk_client;

use serde_json::json;

use client::State;

/// What a model does with a project: it runs the tests, reads the failure, mends it, runs them
/// again, and takes the change home.
#[test]
fn a_project_is_pushed_tested_mended_and_exported() {
    let state = State::new();
    let mut client = state.serve(["--profile", "workspace-core"]);
    let created = client.call(
        "workspace_create",
        json!({ "name": "project", "mem_mib": 128 }),
    );
    let id = created["workspace_id"].as_str().unwrap();
    assert_eq!(created["state"], "running");
    let files = json!([
        { "path": "add.sh", "text": "echo $(($1 - $2))\n" },
        { "path": "tests/run.sh", "text": "test \"$(sh add.sh 2 3)\" = 5 || { echo wrong; exit 1; }\n" },
        { "path": "logo.bin", "base64": "/wD+" },
    ]);
    let pushed = client.call(
        "workspace_sync_push",
        json!({ "workspace_id": id, "files": files }),
    );
    assert_eq!(pushed["entries"], 3);
    let snapshot = client.call("workspace_diff", json!({ "workspace_id": id }));
    assert_eq!(snapshot["change_count"], 4, "{snapshot}");

    let test = json!({ "workspace_id": id, "command": "sh tests/run.sh" });
    let failed = client.call("workspace_exec", test.clone());
    assert_eq!(
        (&failed["exit_code"], &failed["stdout"]),
        (&json!(1), &json!("wrong\n"))
    );
    let read = client.call(
        "workspace_file_read",
        json!({ "workspace_id": id, "path": "add.sh" }),
    );
    assert_eq!(read["text"], "echo $(($1 - $2))\n");
    let patch = "--- a/add.sh\n+++ b/add.sh\n@@ -1 +1 @@\n-echo $(($1 * $2))\n+echo $(($1 + $2))\n";
    let apply = |patch: &str| json!({ "workspace_id": id, "patch": patch });
    let refused = client.fail("workspace_patch_apply", apply(patch));
    assert!(
        refused["what_to_do"]
            .as_str()
            .unwrap()
            .contains("workspace_file_read"),
        "{refused}"
    );
    let patched = client.call("workspace_patch_apply", apply(&patch.replace('*', "-")));
    assert_eq!(patched["files"][0]["path"], "add.sh");
    assert_eq!(client.call("workspace_exec", test)["exit_code"], 0);

    let exported = client.call(
        "workspace_export",
        json!({ "workspace_id": id, "path": "/workspace" }),
    );
    let file = |name: &str| {
        let files = exported["files"].as_array().unwrap();
        files
            .iter()
            .find(|file| file["path"].as_str().unwrap().ends_with(name))
            .unwrap()
            .clone()
    };
    assert_eq!(file("add.sh")["text"], "echo $(($1 + $2))\n");
    assert_eq!(file("logo.bin")["base64"], "/wD+");
    let logs = client.call("workspace_logs", json!({ "workspace_id": id }));
    assert_eq!(logs["command_count"], 2);
    assert_eq!(logs["commands"][0]["exit_code"], 1);
    let reset = client.call("workspace_reset", json!({ "workspace_id": id }));
    assert_eq!(reset["reset_count"], 1);
    let diff = client.call("workspace_diff", json!({ "workspace_id": id }));
    assert_eq!(diff["change_count"], 0, "{diff}");
    assert_eq!(
        client.call("workspace_delete", json!({ "workspace_id": id }))["deleted"],
        true
    );
    assert_eq!(client.close().code(), 0);
}

/// All tools of the widest profile that the test above does not call.
#[test]
fn services_shells_snapshots_and_disks_work() {
    let state = State::new();
    let mut client = state.serve([]);
    let created = client.call(
        "workspace_create",
        json!({ "mem_mib": 128, "labels": { "for": "test" }, "network_policy": "egress+published-ports" }),
    );
    let id = created["workspace_id"].as_str().unwrap();
    let of = |mut more: serde_json::Value| {
        more["workspace_id"] = id.into();
        more
    };

    client.call(
        "workspace_file_write",
        of(json!({ "path": "www/index.html", "text": "hello" })),
    );
    let listed = client.call("workspace_file_list", of(json!({ "recursive": true })));
    assert_eq!(
        listed["entries"][1]["path"], "/workspace/www/index.html",
        "{listed}"
    );
    client.call("snapshot_create", of(json!({ "snapshot_name": "before" })));
    let web = of(json!({
        "service_name": "web",
        "command": ["httpd", "-f", "-v", "-p", "8080", "-h", "/workspace/www"],
        "readiness": { "type": "http", "port": 8080 },
        "published_ports": [{ "guest_port": 8080 }],
    }));
    let started = client.call("service_start", web);
    assert_eq!(started["service"]["state"], "ready", "{started}");
    let port = &started["service"]["published_ports"][0]["host_port"];
    assert!(port.as_u64().is_some_and(|port| port > 0), "{started}");
    let names = of(json!({ "service_name": "web" }));
    assert_eq!(
        client.call("service_status", names.clone())["service"]["service_name"],
        "web"
    );
    assert_eq!(
        client.call("service_list", of(json!({})))["services"][0]["state"],
        "ready"
    );
    let log = client.call("service_logs", names.clone())["log"].clone();
    assert!(log.as_str().unwrap().contains("response:"), "{log}");
    assert_eq!(
        client.call("service_stop", names)["service"]["state"],
        "stopped"
    );

    let opened = client.call("shell_open", of(json!({ "cols": 80, "rows": 24 })));
    let shell = opened["shell_id"].as_str().unwrap();
    let with_shell = |mut more: serde_json::Value| {
        more["shell_id"] = shell.into();
        of(more)
    };
    client.call(
        "shell_write",
        with_shell(json!({ "input": "cd www; echo $((6 * 7)); sleep 1000" })),
    );
    let read = with_shell(json!({ "plain": true, "wait_for_idle_ms": 300 }));
    let read = client.call("shell_read", read);
    assert!(
        read["output"].as_str().unwrap().contains("\n42\n"),
        "{read}"
    );
    client.call("shell_signal", with_shell(json!({})));
    client.call("shell_write", with_shell(json!({ "input": "pwd" })));
    let cursor = &read["next_cursor"];
    let read = with_shell(json!({ "plain": true, "wait_for_idle_ms": 300, "cursor": cursor }));
    let read = client.call("shell_read", read);
    assert!(
        read["output"].as_str().unwrap().contains("/workspace/www"),
        "{read}"
    );
    client.call("shell_close", with_shell(json!({})));
    let gone = client.fail("shell_read", with_shell(json!({})));
    assert_eq!(gone["code"], "no-such-shell");

    let updated = client.call(
        "workspace_update",
        of(json!({ "name": "renamed", "clear_labels": ["for"] })),
    );
    assert_eq!(
        (&updated["name"], &updated["labels"]),
        (&json!("renamed"), &json!({}))
    );
    client.call(
        "workspace_exec",
        of(json!({ "command": "rm -r www; sync" })),
    );
    assert_eq!(
        client.call("workspace_stop", of(json!({})))["state"],
        "stopped"
    );
    let stopped = client.fail("workspace_file_list", of(json!({})));
    assert!(
        stopped["what_to_do"]
            .as_str()
            .unwrap()
            .contains("workspace_start"),
        "{stopped}"
    );
    let disk = client.call("workspace_disk_list", of(json!({ "path": "/workspace" })));
    assert_eq!(disk["entries"], json!([]), "{disk}");
    let read = of(json!({ "path": "/etc/hostname" }));
    assert!(
        client.call("workspace_disk_read", read)["size_bytes"]
            .as_u64()
            .unwrap()
            > 0
    );
    let snapshots = client.call("snapshot_list", of(json!({})))["snapshots"].clone();
    assert_eq!(snapshots.as_array().unwrap().len(), 2, "{snapshots}");
    client.call("workspace_reset", of(json!({ "snapshot": "before" })));
    client.call("workspace_start", of(json!({})));
    let read = of(json!({ "path": "www/index.html" }));
    assert_eq!(client.call("workspace_file_read", read)["text"], "hello");
    client.call("snapshot_delete", of(json!({ "snapshot_name": "before" })));
    assert_eq!(
        client.call("workspace_status", of(json!({})))["state"],
        "running"
    );
    let list = client.call("workspace_list", json!({}));
    assert_eq!(list["workspaces"][0]["name"], "renamed");
    client.call("workspace_delete", of(json!({})));
    assert_eq!(client.close().code(), 0);
}
