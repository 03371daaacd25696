//! What each profile lists. The lists are a contract: a change of one is a change of its file
//! in `golden`, which the test rewrites with `VMCELL_TEST_WRITE_GOLDEN=1`.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, env, fs, path::Path};

use serde_json::{Value, json};
use vmcell::workspace::Workspaces;
use vmcell_mcp::{McpServer, Profile};

/// Clients send the whole list to a model.
const MAX_LIST: usize = 64 * 1024;

fn list(profile: Profile) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::at(folder.path()).unwrap();
    let server = McpServer::builder()
        .profile(profile)
        .workspaces(workspaces.clone())
        .vms(workspaces)
        .build()
        .unwrap();
    let tools = server.tools().into_iter();
    tools
        .map(|tool| serde_json::to_value(tool).unwrap())
        .collect()
}

fn names(tools: &[Value]) -> BTreeSet<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

fn tool<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap()
}

#[test]
fn the_lists_are_those_that_were_agreed_on() {
    for profile in Profile::ALL {
        let mut text = serde_json::to_string_pretty(&list(profile)).unwrap();
        text.push('\n');
        let path = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = path.join(format!("tests/golden/{profile}.json"));
        if env::var_os("VMCELL_TEST_WRITE_GOLDEN").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(text == golden, "{} is not what is listed", path.display());
    }
}

#[test]
fn each_profile_has_its_tools() {
    let full = list(Profile::WorkspaceFull);
    let expected: BTreeSet<_> = "\
        vm_run vm_list_environments vm_create vm_start vm_exec vm_stop vm_delete vm_status \
        vm_network_info vm_reap_expired workspace_create workspace_list workspace_sync_push \
        workspace_stop workspace_start workspace_exec workspace_file_list workspace_file_read \
        workspace_file_write workspace_export workspace_patch_apply workspace_disk_export \
        workspace_disk_list workspace_disk_read workspace_diff snapshot_create snapshot_list \
        snapshot_delete workspace_reset service_start service_list service_status service_logs \
        service_stop shell_open shell_read shell_write shell_signal shell_close workspace_status \
        workspace_update workspace_logs workspace_delete"
        .split(' ')
        .collect();
    assert_eq!(names(&full), expected);
    let core = list(Profile::WorkspaceCore);
    let expected: BTreeSet<_> = "\
        vm_run workspace_create workspace_list workspace_update workspace_status \
        workspace_sync_push workspace_exec workspace_logs workspace_file_list workspace_file_read \
        workspace_file_write workspace_patch_apply workspace_diff workspace_export \
        workspace_reset workspace_delete"
        .split(' ')
        .collect();
    assert_eq!(names(&core), expected);
    assert_eq!(names(&list(Profile::VmRun)), BTreeSet::from(["vm_run"]));

    // The narrow profile knows nothing of networks and secrets.
    for (name, fields) in [
        ("workspace_create", &["network_policy", "secrets"][..]),
        ("workspace_exec", &["secret_env"]),
    ] {
        for field in fields {
            let has = |tools| {
                tool(tools, name)["inputSchema"]["properties"]
                    .get(field)
                    .is_some()
            };
            assert!(has(&full) && !has(&core), "{name} {field}");
        }
    }
}

#[test]
fn every_tool_is_described_for_models_and_clients() {
    for profile in Profile::ALL {
        let tools = list(profile);
        let size = serde_json::to_string(&tools).unwrap().len();
        assert!(size < MAX_LIST, "{profile}: {size} bytes");
        for tool in &tools {
            let name = &tool["name"];
            assert!(tool["description"].as_str().unwrap().len() > 20, "{name}");
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[schema]["type"], "object", "{name} {schema}");
            }
            for hint in [
                "readOnlyHint",
                "destructiveHint",
                "idempotentHint",
                "openWorldHint",
            ] {
                assert!(tool["annotations"][hint].is_boolean(), "{name} {hint}");
            }
            // Who reads only destroys nothing.
            let hints = &tool["annotations"];
            let reads = hints["readOnlyHint"] == true;
            assert!(!(reads && hints["destructiveHint"] == true), "{name}");
        }
    }
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let full = list(Profile::WorkspaceFull);
    for (name, field, default) in [
        ("vm_run", "vcpu_count", json!(1)),
        ("vm_run", "mem_mib", json!(1024)),
        ("vm_run", "timeout_seconds", json!(30.0)),
        ("vm_run", "allow_host_compat", json!(false)),
        ("vm_create", "vcpu_count", json!(1)),
        ("vm_create", "mem_mib", json!(1024)),
        ("vm_create", "allow_host_compat", json!(false)),
        ("workspace_create", "vcpu_count", json!(1)),
        ("workspace_create", "mem_mib", json!(1024)),
        ("workspace_create", "network_policy", json!("off")),
        ("workspace_create", "allow_host_compat", json!(false)),
        ("workspace_sync_push", "dest", json!("/workspace")),
        ("workspace_exec", "timeout_seconds", json!(30.0)),
        ("workspace_file_list", "path", json!("/workspace")),
        ("workspace_file_list", "recursive", json!(false)),
        ("workspace_file_read", "max_bytes", json!(65536)),
        ("workspace_disk_read", "max_bytes", json!(65536)),
        ("workspace_reset", "snapshot", json!("baseline")),
        ("service_start", "ready_timeout_seconds", json!(30.0)),
        ("service_start", "ready_interval_ms", json!(500)),
        ("service_logs", "tail_lines", json!(200)),
        ("service_logs", "all", json!(false)),
        ("shell_open", "cols", json!(120)),
        ("shell_open", "rows", json!(30)),
        ("shell_read", "cursor", json!(0)),
        ("shell_read", "max_chars", json!(65536)),
        ("shell_read", "plain", json!(false)),
        ("shell_write", "append_newline", json!(true)),
        ("shell_signal", "signal_name", json!("INT")),
    ] {
        let properties = &tool(&full, name)["inputSchema"]["properties"];
        assert_eq!(properties[field]["default"], default, "{name} {field}");
    }
}
