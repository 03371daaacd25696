//! `vmcell publish`: ports of another program's VM.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::{
    shared_vm::SharedVm,
    vmcell::{Vmcell, eventually},
    web::{SERVER, host_port, is_free, page},
};

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a VM that runs the web server.
fn with_web_server(test: &str) -> SharedVm {
    let shared = SharedVm::start(test);
    let start = ["service", "start", &shared.id, "web", "--ready", "tcp:8080"];
    let command = ["--", "sh", "-c", SERVER];
    let ended = Vmcell::new(start.iter().chain(&command)).finish();
    ended.assert_printed("");
    shared
}

#[test]
fn a_port_is_open_for_as_long_as_it_is_published() {
    let shared = with_web_server("publish");
    let mut publishing = shared.cli("publish", ["8080"]).start();
    let port = host_port(&publishing.line());
    assert_eq!(page(port).unwrap(), "hello\n");

    // The port cannot be published twice, and the first forwarding goes on.
    let mapping = format!("{port}:8080");
    let second = shared.cli("publish", [mapping.as_str()]).finish();
    second.assert_failed(125, &port.to_string());
    assert_eq!(page(port).unwrap(), "hello\n");

    publishing.signal(Signal::INT);
    assert!(publishing.ends_within(TIMEOUT), "it did not end");
    let ended = publishing.finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (130, ""));
    assert!(page(port).is_err());
    // Now the port is free.
    let mut second = shared.cli("publish", [mapping.as_str()]).start();
    assert_eq!(host_port(&second.line()), port);
    assert_eq!(page(port).unwrap(), "hello\n");
}

#[test]
fn publishing_ends_with_the_vm() {
    let shared = with_web_server("publish-end");
    let mut publishing = shared.cli("publish", ["8080"]).start();
    let port = host_port(&publishing.line());
    shared.cli("kill", []).finish().assert_printed("");
    let ended = publishing.finish();
    assert_eq!((ended.code(), ended.stdout()), (0, ""));
    assert!(ended.stderr.contains("the VM is gone"), "{ended:?}");
    assert!(is_free(port));
}

#[test]
fn a_port_where_nobody_listens_is_open_and_says_nothing() {
    let shared = SharedVm::start("nobody");
    let mut publishing = shared.cli("publish", ["8080"]).start();
    let port = host_port(&publishing.line());
    assert!(page(port).is_err());
    // As soon as a server listens, it works.
    shared.spawn("server", ["sh", "-c", SERVER]);
    let answered = eventually(|| page(port).is_ok_and(|page| page == "hello\n"));
    assert!(answered, "the server is not reached");
}

#[test]
fn machines_are_told_all_ports_at_once() {
    let shared = with_web_server("publish-json");
    let mut publishing = shared.cli("publish", ["8080", "8081", "--json"]).start();
    let mut text = String::new();
    while serde_json::from_str::<serde_json::Value>(&text).is_err() {
        let line = publishing.line();
        assert!(!line.is_empty(), "{text}");
        text.push_str(&line);
    }
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["sandbox_id"], json!(shared.id));
    let guests: Vec<_> = parsed["published"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["guest"].clone())
        .collect();
    assert_eq!(guests, [json!(8080), json!(8081)]);
    let port = parsed["published"][0]["host"].as_u64().unwrap();
    assert_eq!(page(port.try_into().unwrap()).unwrap(), "hello\n");

    // If one port fails, none is published.
    let mapping = format!("{port}:8081");
    let ended = shared.cli("publish", ["8080", &mapping, "--json"]).finish();
    assert_eq!(
        ended.json()["error"]["code"],
        json!("host-port-taken"),
        "{ended:?}"
    );
    assert_eq!((ended.code(), ended.stderr.as_str()), (125, ""));
}
