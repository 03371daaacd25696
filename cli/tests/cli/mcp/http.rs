//! The server on HTTP.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::State;
use crate::vmcell::Running;

struct HttpServer {
    running: Running,
    host: String,
    token: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl HttpServer {
    fn start(state: &State) -> Self {
        let serve = ["mcp", "serve", "--listen", "127.0.0.1:0"];
        let mut running = state.cli(serve).start();
        let url = running.line();
        let host = url.trim_end().strip_prefix("http://").unwrap();
        let host = host.strip_suffix("/mcp").unwrap().to_owned();
        let token = running.line();
        Self {
            running,
            host,
            token: token.trim_end().to_owned(),
        }
    }

    /// Sends a request with these headers.
    fn post(&self, path: &str, headers: &[&str], message: &Value) -> Answer {
        let body = message.to_string();
        let mut request = format!("POST {path} HTTP/1.1\r\n");
        for header in headers {
            request += &format!("{header}\r\n");
        }
        request += "Accept: application/json, text/event-stream\r\n";
        request += "Content-Type: application/json\r\nConnection: close\r\n";
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head[9..12].parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn host(&self) -> String {
        format!("Host: {}", self.host)
    }
}

impl Answer {
    /// Returns the message with this id, of a stream of events.
    fn message(&self, id: u64) -> Value {
        let lines = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = messages.find(|message| message["id"] == id);
        found.unwrap_or_else(|| panic!("{}", self.body))
    }
}

fn hello() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    })
}

#[test]
fn only_who_has_the_token_is_served_and_no_page_of_a_browser() {
    let state = State::new();
    let server = HttpServer::start(&state);
    let (host, token) = (server.host(), server.token.clone());
    let wrong = token.replace(|digit: char| digit.is_ascii_digit(), "a");
    let short = &token[..token.len() - 1];
    for (path, headers, status) in [
        ("/mcp", &[&*host][..], 401),
        ("/mcp", &[&host, &wrong], 401),
        ("/mcp", &[&host, short], 401),
        ("/mcp", &[&host, "Authorization: Bearer "], 401),
        ("/", &[&host, &token], 404),
        ("/mcp", &["Host: evil.example:80", &token], 403),
        (
            "/mcp",
            &[&host, &token, "Origin: https://evil.example"],
            403,
        ),
        ("/mcp", &[&host, &token, "Origin: null"], 403),
    ] {
        let answer = server.post(path, headers, &hello());
        assert_eq!(answer.status, status, "{path} {headers:?}: {}", answer.body);
    }

    let answer = server.post("/mcp", &[&host, &token], &hello());
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.message(1)["result"]["serverInfo"]["name"], "vmcell");
    let session = answer
        .head
        .lines()
        .find(|line| line.starts_with("mcp-session-id:"));
    let session = session.unwrap().to_owned();
    let headers = [&*host, &token, &session, "MCP-Protocol-Version: 2025-06-18"];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post("/mcp", &headers, &ready).status, 202);
    let call = json!({
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": { "name": "vm_run", "arguments": { "command": "echo over HTTP", "mem_mib": 128 } },
    });
    let answer = server.post("/mcp", &headers, &call).message(2);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"], "over HTTP\n",
        "{answer}"
    );
    // Each server has its own token.
    let other = HttpServer::start(&state);
    assert_ne!(other.token, token);
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.finish().code(), 143);
}

#[test]
fn other_machines_do_not_reach_it() {
    let state = State::new();
    let serve = ["mcp", "serve", "--listen", "0.0.0.0:0"];
    state
        .cli(serve)
        .finish()
        .assert_failed(125, "use 127.0.0.1");
}
