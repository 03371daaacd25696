//! Services of workspaces, and what their processes do for clients.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::Value;

use super::Store;
use crate::vmcell::Vmcell;

#[test]
fn services_run_in_a_workspace_with_its_defaults() {
    let store = Store::new();
    let id = store.create(["--user", "1000", "--env", "GREETING=hello"]);
    let start = [
        "service",
        "start",
        &id,
        "web",
        "--ready",
        "file:/workspace/ready",
    ];
    let options = [
        "--ready-timeout-seconds",
        "20",
        "--ready-interval-ms",
        "100",
        "--",
    ];
    let line = "echo $GREETING; id -u; pwd; touch ready; exec sleep 1000";
    let command = ["sh", "-c", line];
    let start = ["--json"].into_iter().chain(start);
    let started = store.text(start.chain(options).chain(command));
    let started: Value = serde_json::from_str(&started).unwrap();
    assert_eq!(started["service"]["phase"], "ready", "{started}");
    assert_eq!(started["workspace_id"], *id);
    let logs = ["service", "logs", &id, "web", "--tail-lines", "2"];
    assert_eq!(store.text(logs), "1000\n/workspace\n");
    let logs = store.json(["service", "logs", &id, "web", "--all"]);
    assert_eq!(logs["log"], "hello\n1000\n/workspace\n");
    let list = store.json(["service", "list", &id]);
    assert_eq!(list["services"][0]["name"], "web");
    let status = store.text(["service", "status", &id, "web"]);
    assert!(status.contains("\nweb   ready"), "{status}");
    let stopped = store.json(["service", "stop", &id, "web"]);
    assert_eq!(stopped["service"]["phase"], "stopped");
    let ended = store.cli(["service", "status", &id, "db"]).finish();
    ended.assert_failed(125, "no service \"db\"");
    store.delete(&id);
    store.assert_empty();
}

/// Returns what a server answers.
fn get(address: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_service_has_ports_that_outlive_the_command() {
    let store = Store::new();
    let policy = "egress+published-ports";
    let id = store.create(["--name", "site", "--network-policy", policy]);
    assert_eq!(store.exec("site", "echo hello > page").code(), 0);
    let start = ["service", "start", "site", "web", "--publish", "8080"];
    let server = ["--ready", "tcp:8080", "--", "httpd", "-f", "-p", "8080"];
    let published = store.text(start.into_iter().chain(server));
    let address = published.strip_suffix(" -> 8080\n").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{published}");
    assert!(get(address).unwrap().ends_with("hello\n"));
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let list = store.json(["service", "list", "site"]);
    assert_eq!(list["services"][0]["published"][0]["host"], port);
    assert_eq!(list["services"][0]["published"][0]["guest"], 8080);
    let status = store.text(["service", "status", "site", "web"]);
    assert!(status.contains(&format!("{port}:8080")), "{status}");
    let row = &store.json(["list"])["workspaces"][0];
    assert_eq!(row["service_count"], 1);
    assert_eq!(row["running_service_count"], 1);
    store.text(["service", "stop", "site", "web"]);
    get(address).unwrap_err();
    let status = store.json(["status", "site"]);
    assert_eq!(status["service_count"], 1);
    assert_eq!(status["running_service_count"], 0);
    store.delete(&id);

    let id = store.create([]);
    let start = ["service", "start", &id, "web", "--publish", "8080"];
    let refused = store.cli(start.into_iter().chain(["--", "true"])).finish();
    refused.assert_failed(125, "choose egress+published-ports");
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn the_metrics_of_a_workspace_are_taken_by_its_keeper() {
    let store = Store::new();
    let id = store.create(["--name", "measured"]);
    let metrics = |options: &[&str]| {
        let arguments = ["metrics", "measured"].iter().chain(options).copied();
        let metrics = Vmcell::new(arguments).env("XDG_STATE_HOME", store.state.path());
        metrics.finish()
    };
    let samples = metrics(&["--json"]).json()["samples"].clone();
    let first = samples[0].clone();
    assert!(first["memory_bytes"].as_u64().unwrap() > 1 << 20, "{first}");
    let flushed = metrics(&["--flush"]).json();
    assert_eq!(flushed["10m"]["samples"][0], first);
    assert!(flushed["24h"]["samples"].is_array(), "{flushed}");
    // Each sample is there once.
    let again = metrics(&["--flush"]).json();
    let again = again["10m"]["samples"].as_array().unwrap().clone();
    assert!(!again.contains(&first), "{again:?}");
    let text = metrics(&["--prometheus"]);
    assert!(text.stdout().contains("measured"), "{text:?}");
    store.delete(&id);
    let ended = metrics(&["--json"]);
    assert_eq!(ended.code(), 125, "{ended:?}");
}
