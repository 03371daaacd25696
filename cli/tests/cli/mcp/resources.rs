//! Files and screens as resources.

use serde_json::json;

use super::client::State;

#[test]
fn files_and_screens_are_read_and_files_are_watched() {
    let state = State::new();
    let mut client = state.serve([]);
    let created = client.call("workspace_create", json!({ "mem_mib": 128 }));
    let id = created["workspace_id"].as_str().unwrap();
    let files = json!([
        { "path": "notes/a b.txt", "text": "one" },
        { "path": "data.bin", "base64": "/wD+" },
    ]);
    client.call(
        "workspace_sync_push",
        json!({ "workspace_id": id, "files": files }),
    );
    let uri = |path: &str| format!("vmcell://{id}/{path}");
    let listed = client.request("resources/list", json!({}))["result"]["resources"].clone();
    let uris: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["uri"].clone())
        .collect();
    assert_eq!(uris, [uri(""), uri("data.bin"), uri("notes")], "{listed}");
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"]
            .as_array()
            .unwrap()
            .len(),
        3
    );

    let mut read = |uri: &str| {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        match answer["result"]["contents"].get(0) {
            Some(contents) => contents.clone(),
            None => answer["error"].clone(),
        }
    };
    assert_eq!(read(&uri("notes/a%20b.txt"))["text"], "one");
    assert_eq!(read(&uri("data.bin"))["blob"], "/wD+");
    assert_eq!(read(&uri("notes"))["text"], "a b.txt\n");
    for wrong in [
        &*uri("none"),
        &uri("../etc/passwd"),
        "vmcell://none/x",
        "file:///etc/passwd",
        "vmcell-screen://none/none",
    ] {
        assert_eq!(read(wrong)["code"], -32002, "{wrong}");
    }

    let watched = json!({ "uri": uri("notes") });
    assert!(client.request("resources/subscribe", watched.clone())["result"].is_object());
    client.notifications.clear();
    let write = json!({ "workspace_id": id, "path": "notes/new.txt", "text": "two" });
    client.call("workspace_file_write", write);
    while !client
        .notifications
        .iter()
        .any(|it| it["params"]["uri"] == uri("notes"))
    {
        let message = client.receive();
        client.notifications.push(message);
    }
    assert_eq!(
        client.notifications[0]["method"],
        "notifications/resources/updated"
    );
    assert!(client.request("resources/unsubscribe", watched)["result"].is_object());

    let shell = client.call("shell_open", json!({ "workspace_id": id }))["shell_id"].clone();
    let shell = shell.as_str().unwrap();
    let typed = json!({ "workspace_id": id, "shell_id": shell, "input": "echo $((6 * 7))" });
    client.call("shell_write", typed);
    let printed = json!({ "workspace_id": id, "shell_id": shell, "wait_for_idle_ms": 300 });
    client.call("shell_read", printed);
    let screen = json!({ "uri": format!("vmcell-screen://{id}/{shell}") });
    let screen = client.request("resources/read", screen)["result"]["contents"][0].clone();
    assert!(
        screen["text"].as_str().unwrap().contains("\n42"),
        "{screen}"
    );
    let image = json!({ "uri": format!("vmcell-screen://{id}/{shell}.png") });
    let image = client.request("resources/read", image)["result"]["contents"][0].clone();
    assert!(
        image["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"),
        "{}",
        image["mimeType"]
    );

    let prompts = client.request("prompts/list", json!({}));
    assert_eq!(
        prompts["result"]["prompts"][0]["name"],
        "workspace_workflow"
    );
    let prompt = json!({ "name": "workspace_workflow", "arguments": { "task": "mend it" } });
    let prompt = client.request("prompts/get", prompt)["result"]["messages"][0].clone();
    let text = prompt["content"]["text"].as_str().unwrap();
    assert!(
        text.contains("workspace_diff") && text.ends_with("mend it"),
        "{text}"
    );
    client.call("workspace_delete", json!({ "workspace_id": id }));
}
